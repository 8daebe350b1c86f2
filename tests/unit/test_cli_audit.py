"""`headrace audit`, and what commands note there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
import httpx2
import pytest
from fastapi import FastAPI

from headrace import App, Backoff
from headrace.cli import auditing
from headrace.cli.auditing import OPERATING, user
from headrace.cli.root import cli
from headrace.model.api_token import Scope
from headrace.service.application import OF_APPS, PREFIX, make_service
from headrace.service.document import operation_id
from headrace.service.operations import Operation, operations_of
from headrace.service.permits import Permit, Permits
from headrace.service.serving import Address, serve
from tests.unit.cli_runner import CommandLine, as_client, command_line
from tests.unit.flow_making import flow, node
from tests.unit.report_commands import reports_on_memory
from tests.waiting import wait_until


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Return a command line."""
    with command_line(monkeypatch) as line:
        yield line


def actions(headrace: CommandLine, *options: object) -> list[dict[str, Any]]:
    """Return what was noted, the newest first."""
    found: list[dict[str, Any]] = headrace.json("audit", "list", *options)
    return found


def operate_in(operations: Mapping[Permit, Operation]) -> set[str]:
    """Return the names of what needs the scope operate over HTTP."""
    return {
        operation.name
        for permit, operation in operations.items()
        if permit.path.startswith(f"{PREFIX}/") and permit.needed is not None and permit.needed.scope is Scope.OPERATE
    }


def test_what_operates_over_http_is_noted_of_commands_too() -> None:
    """Under the same name, so that none is forgotten; but for what looks, and for what there is no command for."""
    service = make_service(App("memory://"))
    operate = operate_in(operations_of(service, service.state.gate.permits))
    assert operate - set(OPERATING.values()) == {"list_actions", "seal_batch"}


def test_what_operates_in_applications_is_noted_of_their_commands_too() -> None:
    """Those of all at once, as no app has them all. `headrace papers review` changes files, and nothing of a store."""
    service = FastAPI(generate_unique_id_function=operation_id)
    for _, group in OF_APPS:
        service.include_router(group, prefix=PREFIX)
    operate = operate_in(operations_of(service, Permits.of(service)))
    assert {"cancel_details", "forget_memory_user", "import_workflows", "resume_report"} < operate
    assert operate - set(OPERATING.values()) == {"decide_papers_value", "remove_report_file", "set_triggers_workflow"}


@pytest.mark.parametrize("words", OPERATING)
def test_what_operates_is_a_command(words: str) -> None:
    """So that none loses its place in the audit when it is renamed."""
    command: click.Command | None = cli
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None


def test_a_command_that_operates_is_noted(headrace: CommandLine) -> None:
    """Once, with who ran it, on what, and what was asked for; those that look are not."""
    headrace.text("queue", "pause", "llm", "--reason", "the bill", "--force", "--json")
    headrace.text("queue", "stats")
    [noted] = actions(headrace)

    assert (noted["who"], noted["operation"], noted["subject"]) == (user(), "pause_queue", {"name": "llm"})
    assert noted["detail"] == {"reason": "the bill", "force": True}
    assert (noted["status"], noted["via"], noted["token_id"], noted["address"]) == (0, "cli", None, "")
    assert noted["who"].startswith("cli:") and "@" in noted["who"]


def test_a_command_that_fails_is_noted_with_its_code(headrace: CommandLine) -> None:
    """Of those that were refused before the store was asked nothing is."""
    job = uuid4()
    assert headrace.refusal("job", "cancel", job)[0] == 5
    assert headrace.refusal("job", "cancel", "seven")[0] == 2
    [noted] = actions(headrace)

    assert (noted["operation"], noted["subject"], noted["status"]) == ("cancel_job", {"job_id": str(job)}, 5)


def test_tokens_are_noted_without_themselves(headrace: CommandLine) -> None:
    """Who made one, of which name and scopes, and who revoked it."""
    made = headrace.json("token", "create", "shop", "--scope", "read", "--scope", "submit", "--expires", "30d")
    headrace.text("token", "revoke", made["id"])
    revoked, created = actions(headrace)

    assert created["subject"] == {"name": "shop"}
    assert created["detail"] == {"scopes": ["read", "submit"], "expires": "30d"}
    assert revoked["operation"] == "revoke_token"
    assert made["token"] not in headrace.text("audit", "list", "--json")


def test_a_change_behind_a_look_is_noted_once(headrace: CommandLine) -> None:
    """Dead letters are looked for, and then run again: one action, with what was chosen and without the patch."""
    app = headrace.app()

    @app.task(name="ask", retry=Backoff.none())
    async def ask(page: int) -> None:
        raise ValueError(f"page {page} has no answer")

    headrace.finish(app, as_client(app, lambda: ask.enqueue(7)).id)
    headrace.text("dlq", "redrive", "--task", "ask", "--patch", '{"kwargs": {"page": 8}}', "--yes")
    [noted] = actions(headrace)

    assert (noted["operation"], noted["detail"], noted["status"]) == ("redrive_dead_letters", {"task": "ask"}, 0)


async def test_a_service_that_stops_writes_what_it_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what was answered right before its end."""
    with command_line(monkeypatch) as line:
        stopping, told = asyncio.Event(), list[str]()
        address = Address("127.0.0.1", 0)
        task = asyncio.create_task(serve(App(), address, worker=False, stopping=stopping, announce=told.append))
        await wait_until(lambda: told or task.done())
        async with httpx2.AsyncClient(base_url=told[0]) as client:
            answer = await client.post("/api/v1/queues/llm/pause", json={"force": True})
            assert answer.status_code == 200
            stopping.set()
            await asyncio.wait_for(task, 10)
        [action] = await line.stores.audit.list_actions(limit=9)

    assert (action.who, action.address, action.operation) == ("local", "127.0.0.1", "pause_queue")


def test_a_look_before_a_change_is_none(headrace: CommandLine) -> None:
    """Dead letters that are only looked for are not noted."""
    headrace.text("dlq", "redrive", "--dry-run")
    assert actions(headrace) == []


def test_dead_letters_of_events_that_are_put_back_are_noted(headrace: CommandLine) -> None:
    """Not those that are looked at; and a group of readers that is forgotten is, also where there is none."""
    redrive = ("events", "dead-letters", "redrive", "outbox.event.ShopOrder", "--wait", "10ms")
    headrace.text("events", "dead-letters", "list", "outbox.event.ShopOrder", "--wait", "10ms")
    headrace.text(*redrive, "--dry-run")
    headrace.text(*redrive)
    assert headrace("events", "groups", "forget", "nobody", "--yes").exit_code == 5

    assert [(one["operation"], one["subject"], one["status"]) for one in reversed(actions(headrace))] == [
        ("redrive_events", {"topic": "outbox.event.ShopOrder"}, 0), ("forget_group", {"group": "nobody"}, 5),
    ]  # fmt: skip


def test_batches_that_are_held_are_noted(headrace: CommandLine) -> None:
    """When they are paused, and when they go on; also one that there is not."""
    batch = str(uuid4())
    for change in ("pause", "resume"):
        assert headrace.refusal("batch", change, batch)[0] == 5
    assert [(one["operation"], one["subject"]) for one in reversed(actions(headrace))] == [
        ("pause_batch", {"batch_id": batch}), ("resume_batch", {"batch_id": batch}),
    ]  # fmt: skip


def test_an_audit_that_fails_is_no_end_of_a_command(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails of it: the command tells what it did."""

    def fail() -> str:
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(auditing, "user", fail)
    paused = headrace("queue", "pause", "llm", "--force")
    assert (paused.exit_code, paused.stdout) == (0, "llm is paused\n")
    assert "the audit lacks this command" in paused.stderr
    assert headrace.refusal("job", "cancel", uuid4())[0] == 5


def test_nothing_is_noted_where_the_audit_is_off(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By commands either."""
    monkeypatch.setenv("HEADRACE_SERVICE_AUDIT", "off")
    headrace.text("queue", "pause", "llm", "--force")
    assert actions(headrace) == []
    monkeypatch.setenv("HEADRACE_SERVICE_AUDIT", "some")
    assert headrace.refusal("audit", "list")[1]["message"].startswith("service.audit must be operate, all or off")


def test_actions_are_listed_by_name(headrace: CommandLine) -> None:
    """As a table for people; limits and names that nothing has are told."""
    assert "There are no actions" in headrace.text("audit", "list")
    for name in ("a", "b"):
        headrace.text("queue", "pause", name, "--force")
    headrace.text("queue", "resume", "a")

    assert [one["subject"]["name"] for one in actions(headrace, "--operation", "pause_queue")] == ["b", "a"]
    assert [one["operation"] for one in actions(headrace, "--limit", 1)] == ["resume_queue"]
    assert len(actions(headrace, "--who", user())) == 3
    assert "There are no such actions" in headrace.text("audit", "list", "--who", "nobody")
    assert "pause_queue" in headrace.text("audit", "list")
    assert headrace.refusal("audit", "list", "--limit", "0")[0] == 2


def done(headrace: CommandLine) -> list[tuple[object, ...]]:
    """Return what was done to what, and how it ended, the oldest first."""
    return [(one["operation"], one["subject"], one["status"]) for one in reversed(actions(headrace))]


def test_flows_that_are_stored_and_switched_are_noted(headrace: CommandLine, tmp_path: Path) -> None:
    """Not those that are only tried or shown."""
    file = tmp_path / "go.json"
    file.write_text(
        json.dumps(flow([node("Go", "manual"), node("End", "noOp")], "Go -> End", name="Go")), encoding="utf-8"
    )
    for options in (("--dry-run",), ("--activate",)):
        headrace.text("flows", "import", file, *options)
    headrace.text("flows", "list")
    headrace.text("flows", "deactivate", "Go")
    assert headrace.refusal("flows", "activate", "nobody")[0] == 5
    assert done(headrace) == [
        ("import_workflows", {"paths": str(file)[:200]}, 0), ("deactivate_workflow", {"name": "Go"}, 0),
        ("activate_workflow", {"name": "nobody"}, 5),
    ]  # fmt: skip


def test_what_is_done_to_details_here_is_noted(headrace: CommandLine) -> None:
    """A mode that is only shown is not; a service that is asked notes by itself."""
    batch = str(uuid4())
    headrace.text("details", "mode")
    headrace.text("details", "mode", "single-call")
    assert headrace.refusal("details", "cancel", batch)[0] == 5
    assert done(headrace) == [
        ("change_details_mode", {"wanted": "single-call"}, 0), ("cancel_details", {"batch_id": batch}, 5),
    ]  # fmt: skip


def test_reports_that_are_resumed_are_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also one that there is not."""
    with reports_on_memory(monkeypatch) as line:
        assert line.refusal("report", "resume", "0" * 32, "--out", tmp_path / "out", "--workers-elsewhere")[0] == 5
        assert done(line) == [("resume_report", {"job_id": "0" * 32}, 5)]
