"""`headrace token`, and what `headrace serve` asks before it listens beyond this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx2
import pytest

from headrace import App
from headrace.cli.root import COMMANDS
from headrace.engine.tokens import make_token
from headrace.model.api_token import Scope, is_token
from headrace.service.serving import Address, serve
from tests.unit.cli_runner import CommandLine, command_line
from tests.unit.gate_calls import bearer
from tests.waiting import wait_until


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Return a command line."""
    with command_line(monkeypatch) as line:
        yield line


def test_a_token_is_made_shown_once_listed_and_revoked(headrace: CommandLine) -> None:
    """Standard output has it alone; later nothing shows it."""
    result = headrace("token", "create", "shop", "--scope", "submit", "--scope", "read", "--expires", "30d")
    token = result.stdout.strip()
    assert (result.exit_code, is_token(token)) == (0, True)
    assert "shown this once" in result.stderr
    [listed] = headrace.json("token", "list")
    assert (listed["name"], listed["scopes"], listed["state"]) == ("shop", ["read", "submit"], "live")
    assert listed["expires_at"] > listed["created_at"]
    assert token.startswith(listed["shown"])
    assert token not in headrace.text("token", "list")
    revoked = headrace.json("token", "revoke", listed["id"])
    assert revoked["state"] == "revoked"
    assert headrace.json("token", "revoke", listed["id"]) == revoked
    assert "is revoked" in headrace.text("token", "revoke", listed["id"])


def test_as_json_the_token_stands_in_its_document(headrace: CommandLine) -> None:
    """Beside what is kept of it."""
    made = headrace.json("token", "create", "dashboard", "--scope", "read")
    assert is_token(made["token"])
    assert (made["expires_at"], made["used_at"]) == (None, None)
    [listed] = headrace.json("token", "list")
    assert listed == {key: value for key, value in made.items() if key != "token"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "shop"), 2),
        (("create", "shop", "--scope", "admin"), 2),
        (("create", "", "--scope", "read"), 2),
        (("create", "a\nb", "--scope", "read"), 2),
        (("create", "shop", "--scope", "read", "--expires", "soon"), 2),
        (("create", "shop", "--scope", "read", "--expires", "0s"), 2),
        (("revoke", "seven"), 2),
        (("revoke", "0198c0de-0000-7000-8000-000000000000"), 5),
    ],
)
def test_mistakes_are_told(headrace: CommandLine, arguments: tuple[str, ...], code: int) -> None:
    """With the codes of all commands, and nothing is made."""
    assert headrace.refusal("token", *arguments)[0] == code
    assert headrace.json("token", "list") == []


def test_a_token_of_the_memory_store_would_be_gone(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """So none is made."""
    monkeypatch.setenv("HEADRACE_QUEUE_URL", "memory://")
    code, error = headrace.refusal("token", "create", "shop", "--scope", "read")
    assert (code, "the token with it" in error["message"]) == (2, True)


def test_the_command_has_its_line() -> None:
    """In the help of all commands."""
    assert COMMANDS["token"].target == "headrace.cli.token:token"


async def test_a_service_that_others_reach_asks_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also whoever comes from this machine, and by whatever name; the token made before lets in."""
    with command_line(monkeypatch) as line:
        stopping, told = asyncio.Event(), list[str]()
        token, _ = await make_token(line.stores, "t", [Scope.READ])
        address = Address("0.0.0.0", 0)
        task = asyncio.create_task(serve(App(), address, worker=False, stopping=stopping, announce=told.append))
        await wait_until(lambda: told or task.done())
        url = told[0].replace("0.0.0.0", "127.0.0.1")
        async with httpx2.AsyncClient(base_url=url) as client:
            assert (await client.get("/healthz")).status_code == 200
            for path in ("/api/v1/runs", "/nothing", "/%68ealthz", "/healthz%0A", "/healthz/"):
                assert (await client.get(path)).status_code == 401, path
            assert (await client.get("/api/v1/runs", headers=bearer(token))).status_code == 200
            assert (await client.get("/nothing", headers=bearer(token))).status_code == 404
            stopping.set()
            await asyncio.wait_for(task, 10)
        [kept] = await line.stores.tokens.list_tokens()
        assert kept.used_at is not None
