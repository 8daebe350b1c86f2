"""Bounds of the service: of requests that run at once, and of connections that ask for nothing."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from headrace.service import connections
from headrace.service.connections import Connections, make_room
from headrace.service.streams import Crowd, Streams
from tests.unit.service_calls import code_of
from tests.waiting import wait_until


async def test_requests_beyond_the_bound_are_refused() -> None:
    """With 503 and when to try again; streams are not among them, and who has ended makes room."""
    going, running = asyncio.Event(), list[Scope]()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        running.append(scope)
        await going.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    streams = Streams(1)
    transport = httpx2.ASGITransport(Crowd(slow, streams, most=2))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        first = [asyncio.create_task(client.get("/")) for _ in range(2)]
        await wait_until(lambda: len(running) == 2)
        refused = await client.get("/")
        assert (refused.status_code, code_of(refused), refused.headers["retry-after"]) == (
            503,
            "too_many_requests",
            "1",
        )
        streams.open = 1
        third = asyncio.create_task(client.get("/"))
        await wait_until(lambda: len(running) == 3)
        going.set()
        assert [(await task).status_code for task in (*first, third)] == [200, 200, 200]
        streams.open = 0
        assert (await client.get("/")).status_code == 200


class FakeConnection:
    """A connection as the server has it."""

    def __init__(self, port: int, *, asked: bool) -> None:
        self.client, self.transport = ("127.0.0.1", port), self
        self.cycle: Any = SimpleNamespace(response_complete=False) if asked else None
        self.cuts = 0

    def abort(self) -> None:
        """Count a cut."""
        self.cuts += 1


def held(*found: FakeConnection, most: int = 9) -> Connections:
    """Return the connections of a server that has these."""

    server: Any = SimpleNamespace(server_state=SimpleNamespace(connections=set(found)))
    return Connections(server, most=most)


def test_connections_that_ask_for_nothing_are_cut_at_the_second_look() -> None:
    """Also behind an answer; those that are answered are left, and those that asked again since."""
    _, late, asked, answered, again = every = [FakeConnection(port, asked=port > 2) for port in range(1, 6)]
    found = held(*every)
    answered.cycle.response_complete = again.cycle.response_complete = True
    found.cut_silent()
    late.cycle, again.cycle = (SimpleNamespace(response_complete=True) for _ in range(2))
    found.cut_silent()
    assert [one.cuts for one in every] == [1, 0, 0, 1, 0]
    found.cut_silent()
    assert [one.cuts for one in (late, asked, again)] == [1, 0, 1]


@pytest.mark.parametrize("path", ["/x", "/healthz"])
async def test_a_client_that_leaves_an_answer_unread_is_cut(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Its request ends, and makes room; of what is open to everybody too."""
    monkeypatch.setattr("headrace.service.streams.SLOW_SECONDS", 0.02)

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def unread(_: object) -> None:
        await asyncio.Event().wait()

    async def silence() -> Any:
        await asyncio.Event().wait()

    cuts = list[tuple[str, int]]()
    streams = Streams(1)
    streams.cut = cuts.append
    crowd = Crowd(answers, streams)
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "client": ("127.0.0.1", 7)}
    await asyncio.wait_for(crowd(scope, silence, unread), 5)
    assert (cuts, crowd._running) == ([("127.0.0.1", 7)], 0)


async def test_who_watches_the_service_is_answered_in_any_crowd() -> None:
    """Probes are not counted: a service that is busy must not be taken for dead."""

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx2.ASGITransport(Crowd(answers, Streams(1), most=0))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert [(await client.get(path)).status_code for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 503]


async def test_connections_beyond_the_bound_are_refused() -> None:
    """With a problem, and the connection closed behind it; probes are answered on them too."""

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    streams, connections = Streams(1), held(FakeConnection(1, asked=True), FakeConnection(2, asked=True), most=1)
    streams.crowded = connections.are_too_many
    transport = httpx2.ASGITransport(Crowd(answers, streams))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        refused = await client.get("/api/v1/jobs")
        assert (refused.status_code, code_of(refused)) == (503, "too_many_connections")
        assert (refused.headers["connection"], refused.headers["retry-after"]) == ("close", "1")
        assert [(await client.get(path)).status_code for path in ("/healthz", "/readyz")] == [200, 200]
        streams.crowded = held(FakeConnection(1, asked=True), most=1).are_too_many
        assert (await client.get("/api/v1/jobs")).status_code == 200


def test_the_connection_of_one_client_is_cut() -> None:
    """And no other."""
    one, two = FakeConnection(1, asked=True), FakeConnection(2, asked=True)
    held(one, two).cut(("127.0.0.1", 2))
    assert (one.cuts, two.cuts) == (0, 1)


@pytest.mark.parametrize(
    ("soft", "hard", "set_to", "room"),
    [
        (1_024, 1_048_576, 4_224, 4_096),
        (1_024, -1, 4_224, 4_096),
        (1_024, 2_048, 2_048, 1_920),
        (65_536, 65_536, None, 4_096),
    ],
)
def test_there_is_room_for_as_many_connections_as_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, set_to: int | None, room: int
) -> None:
    """The soft limit is raised as far as it has to be and may be."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(connections.resource, "setrlimit", lambda _, limits: told.append(limits))
    assert make_room() == room
    assert told == ([] if set_to is None else [(set_to, hard)])
