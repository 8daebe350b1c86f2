"""Details over HTTP: each entry once and in order over streams that are cut, and what refusals become."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from headrace import ConfigError, ConflictError, HeadraceError, NotAllowedError, NotFoundError
from headrace.apps.details.commands.addresses import parse_address, read_token
from headrace.apps.details.commands.desks import Told
from headrace.apps.details.commands.refusals import RefusedError, ServiceError, ServiceUnreachableError
from headrace.apps.details.commands.remote import RemoteDesk, new_client
from headrace.model.api_token import new_token
from tests.unit.details_service import ACCEPTED, BATCH, PREFIX, FakeService, entries, fake_service


async def followed(service: FakeService, *, patience: float = 5.0) -> list[Told]:
    """Follow the batch of a service to its end."""
    async with fake_service(service), new_client(service.url, None) as client:
        return [told async for told in RemoteDesk(client, patience=patience).follow(BATCH)]


async def ask(service: FakeService, work: Any, *, token: str | None = None) -> Any:
    """Ask a service."""
    async with fake_service(service), new_client(service.url, token) as client:
        return await work(RemoteDesk(client))


@pytest.mark.parametrize("cuts", [[], [3], [0], [1] * 3, [2, 0, 3]])
async def test_each_entry_is_seen_once_and_in_order(cuts: list[int]) -> None:
    """However often the stream is cut, also within nothing, it goes on behind the last entry."""
    service = FakeService(entries(5), cuts=list(cuts))
    told = await followed(service)
    assert [one.seq for one in told] == list(range(1, 9))
    assert [one.data.get("name") for one in told if one.type == "item"] == [f"Name {number}" for number in range(5)]
    assert len(service.asked) == len(cuts) + 1


async def test_a_stream_is_asked_for_behind_the_last_entry() -> None:
    """The header has the number of the last entry that was seen; none before the first one."""
    service = FakeService(entries(5), cuts=[3, 2])
    await followed(service)
    assert [one.headers.get("last-event-id") for one in service.asked] == [None, "3", "5"]


async def test_a_service_that_was_never_there_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a minute for a wrong address."""
    monkeypatch.setattr("headrace.apps.details.commands.remote.AGAIN_SECONDS", (0.1,))
    async with new_client("http://127.0.0.1:9", None) as client:
        began = time.monotonic()
        with pytest.raises(ServiceUnreachableError, match="could not be followed"):
            async for _ in RemoteDesk(client).follow(BATCH):
                pass
    assert time.monotonic() - began < 10


async def test_a_service_that_went_away_is_waited_for_and_given_up() -> None:
    """The error says that the batch goes on."""
    service = FakeService(entries(5), cuts=[2])
    async with new_client("http://127.0.0.1:9", None) as client:
        async with fake_service(service):
            client.base_url = service.url
            feed = RemoteDesk(client, patience=0.2).follow(BATCH)
            seen = [await anext(feed) for _ in range(2)]
        with pytest.raises(ServiceUnreachableError, match="the batch goes on"):
            await anext(feed)
    assert [told.seq for told in seen] == [1, 2]


async def test_a_token_that_may_not_read_makes_nothing() -> None:
    """What it made could not be followed with it."""
    refused = (403, {"detail": "this needs a token of the scope read; this one has: submit"})
    service = FakeService(answers={f"GET {PREFIX}/mode": [refused], f"POST {PREFIX}": [(202, ACCEPTED)]})
    with pytest.raises(NotAllowedError, match="scope read"):
        await ask(service, lambda desk: desk.submit({"type": "item", "count": 3}, "k-1"), token=new_token())
    assert service.of("POST") == []


async def test_a_request_is_sent_with_its_key_and_its_token() -> None:
    """The token goes into the header alone, the request as it is; before, whether the token may read is asked."""
    token, request = new_token(), {"type": "item", "count": 3}
    service = FakeService(answers={
        f"GET {PREFIX}/mode": [(200, {"mode": "normal"})], f"POST {PREFIX}": [(202, ACCEPTED)],
    })  # fmt: skip
    answer = await ask(service, lambda desk: desk.submit(request, "k-1"), token=token)
    [_, asked] = service.asked
    assert answer == ACCEPTED
    assert (asked.body, asked.headers["idempotency-key"]) == (request, "k-1")
    assert asked.headers["authorization"] == f"Bearer {token}" and token not in asked.path


async def test_a_request_is_sent_again_while_the_service_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same key, so that it makes one batch."""
    monkeypatch.setattr("headrace.apps.details.commands.remote.AGAIN_SECONDS", (0.0, 0.0))
    busy = (503, {"code": "store_unavailable", "detail": "later"})
    service = FakeService(answers={f"POST {PREFIX}": [busy, busy, (202, ACCEPTED)]})
    assert await ask(service, lambda desk: desk.submit({}, "k-1")) == ACCEPTED
    assert [one.headers["idempotency-key"] for one in service.of("POST")] == ["k-1"] * 3


@pytest.mark.parametrize(
    ("status", "document", "kind", "words"),
    [
        (401, {"detail": "send a token"}, NotAllowedError, "send a token.*--token-file"),
        (403, {"detail": "the token lacks the scope read"}, NotAllowedError, "lacks the scope read"),
        (404, {"detail": "no batch 7"}, NotFoundError, "no batch 7"),
        (409, {"detail": "another request"}, ConflictError, "another request"),
        (422, {"detail": "count must be", "code": "invalid_input"}, RefusedError, "count must be"),
        (503, {"detail": "no store"}, ServiceUnreachableError, "no store"),
        (500, b"<html>", ServiceError, "answered 500"),
        (302, b"", RefusedError, "leads elsewhere"),
        (200, b"<html>", ServiceError, "did not answer as a service of Headrace"),
    ],
)
async def test_refusals_become_errors_with_the_words_of_the_service(
    status: int, document: Any, kind: type[HeadraceError], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind ends the command with its own exit code."""
    monkeypatch.setattr("headrace.apps.details.commands.remote.AGAIN_SECONDS", (0.0,))
    service = FakeService(answers={f"GET {PREFIX}/{BATCH}": [(status, document)]})
    with pytest.raises(kind, match=words):
        await ask(service, lambda desk: desk.view(BATCH))


@pytest.mark.parametrize("other", ["../mode", "a/b?c=d", "ü"])
async def test_an_id_cannot_lead_to_another_route(other: str) -> None:
    """What is no id is looked for as one."""
    service = FakeService()
    with pytest.raises(NotFoundError):
        await ask(service, lambda desk: desk.view(other))
    [asked] = service.asked
    assert asked.path.startswith(f"{PREFIX}/") and asked.path.count("/") == 4 and "?" not in asked.path


async def test_a_change_of_mode_is_asked_for_until_it_is_done() -> None:
    """What is left is told meanwhile."""
    waiting = (202, {"mode": "normal", "switching_to": "single-call", "detail": "3 batches are left"})
    service = FakeService(answers={f"PUT {PREFIX}/mode": [waiting, waiting, (200, {"mode": "single-call"})]})
    left: list[str] = []
    assert (await ask(service, lambda desk: desk.set_mode("single-call", left.append)))["mode"] == "single-call"
    assert left == ["3 batches are left"] * 2


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8400", "ftp://host", "http://", "http://h:99999", "http://h/?a=b", "http://a b"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """The error shows one that is."""
    with pytest.raises(ConfigError, match=r"--url must be the address .* http://127\.0\.0\.1:8400"):
        parse_address(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    """Addresses are logged and shown; the error says where a token goes."""
    with pytest.raises(ConfigError, match="--token-file") as refused:
        parse_address("http://ann:secret@host")
    assert "secret" not in str(refused.value)


def test_a_token_is_read_from_a_file_else_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is needed."""
    first, second = new_token(), new_token()
    (tmp_path / "token").write_text(f"{first}\n")
    assert read_token(None) is None
    monkeypatch.setenv("HEADRACE_TOKEN", second)
    assert (read_token(None), read_token(tmp_path / "token")) == (second, first)


@pytest.mark.parametrize("content", [b"", b"hra_mistyped", b"\xff\xfe", b"a\nb"])
def test_what_is_no_token_is_refused_without_repeating_it(tmp_path: Path, content: bytes) -> None:
    """A file of something else may hold another secret."""
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError, match="--token-file") as refused:
        read_token(tmp_path / "token")
    assert "mistyped" not in str(refused.value).replace("or was mistyped", "")


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With its path."""
    with pytest.raises(ConfigError, match=r"none \(No such file"):
        read_token(tmp_path / "none")


async def test_a_batch_is_cancelled_by_its_service() -> None:
    """And what became of it is answered."""
    found = {"status": "cancelled", "delivered": 2, "count": 3}
    service = FakeService(answers={f"POST {PREFIX}/{BATCH}/cancel": [(200, found)]})
    assert await ask(service, lambda desk: desk.cancel(BATCH)) == found
