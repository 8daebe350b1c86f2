"""Serving on a socket: what is announced, what is answered, and the end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from headrace.model.errors import ConfigError
from headrace.service import serving
from headrace.service.audit_log import AuditLog
from headrace.service.gate import Gate
from headrace.service.serving import Address, serve
from tests.unit.service_calls import code_of, shop
from tests.waiting import wait_until


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_it_answers_until_it_is_asked_to_stop(host: str) -> None:
    """The URL it tells is the one it answers at; a request that runs then is still answered."""
    stopping, told = asyncio.Event(), list[str]()
    app = shop()
    task = asyncio.create_task(serve(app, Address(host, 0), worker=True, stopping=stopping, announce=told.append))
    await wait_until(lambda: told)
    assert told[0].startswith("http://127.0.0.1:")
    async with httpx2.AsyncClient(base_url=told[0]) as client:
        started = await client.post("/api/v1/runs", json={"workflow": "twice", "input": 3})
        assert (started.status_code, "server" in started.headers) == (201, False)
        run = app.find_run(started.json()["run"])
        assert await run.result("10s") == 12
        stopping.set()
        await asyncio.wait_for(task, 10)
        with pytest.raises(httpx2.ConnectError):
            await client.get("/healthz")
    assert not app.is_open


async def test_a_service_that_cannot_go_on_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was: what waits for the audit is written, and no task goes on."""
    closed: list[object] = []
    monkeypatch.setattr(AuditLog, "close", _noted(AuditLog.close, closed))
    monkeypatch.setattr(Gate, "close", _noted(Gate.close, closed))

    def announce(_: str) -> None:
        raise BrokenPipeError(32, "nobody reads that")

    before = asyncio.all_tasks()
    with pytest.raises(BrokenPipeError):
        await serve(shop(), Address("127.0.0.1", 0), worker=False, stopping=asyncio.Event(), announce=announce)
    assert [type(one) for one in closed] == [Gate, AuditLog]
    await wait_until(lambda: asyncio.all_tasks() == before)


def _noted(close: Callable[[Any], Awaitable[None]], closed: list[object]) -> Callable[[Any], Awaitable[None]]:
    async def noted(one: Any) -> None:
        closed.append(one)
        await close(one)

    return noted


async def test_a_port_that_is_in_use_is_told() -> None:
    """With the fix, and before the store is opened."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is in use.*--port"):
            await serve(
                shop(), Address("127.0.0.1", port), worker=False, stopping=asyncio.Event(), announce=lambda _: None
            )


async def test_a_port_that_is_not_for_everybody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system says of it is in the error."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("headrace.service.serving.socket.create_server", refuse)
    with pytest.raises(ConfigError, match=r"port 80 of ::1 cannot be used \(Permission denied\)"):
        await serve(shop(), Address("::1", 80), worker=False, stopping=asyncio.Event(), announce=lambda _: None)


async def test_a_service_without_room_says_so_and_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another connection than it has room for is refused with a problem, and then closed; probes are answered."""
    monkeypatch.setattr(serving, "make_room", lambda: 1)
    stopping, told = asyncio.Event(), list[str]()
    task = asyncio.create_task(
        serve(shop(), Address("127.0.0.1", 0), worker=False, stopping=stopping, announce=told.append)
    )
    await wait_until(lambda: told)
    async with httpx2.AsyncClient(base_url=told[0]) as one, httpx2.AsyncClient(base_url=told[0]) as other:
        assert (await one.get("/api/v1/jobs")).status_code == 200
        assert (await other.get("/healthz")).status_code == 200
        refused = await other.get("/api/v1/jobs")
        assert (refused.status_code, code_of(refused)) == (503, "too_many_connections")
        assert (await one.get("/api/v1/jobs")).status_code == 200
    stopping.set()
    await asyncio.wait_for(task, 10)


async def test_a_service_on_a_memory_store_is_for_this_machine_alone() -> None:
    """Nobody can make a token for it, and it does not say that one be made."""
    with pytest.raises(ConfigError, match="the memory store has none but of this process") as caught:
        address = Address("0.0.0.0", 0)
        await serve(shop(), address, worker=False, stopping=asyncio.Event(), announce=lambda _: None)
    assert "token create" not in str(caught.value)


def test_answers_are_not_held_back() -> None:
    """Connections inherit it from the socket that accepts them; without it each answer takes 40 ms more."""
    with serving.listen(Address("127.0.0.1", 0)) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /a\x00b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_as_all_else(sent: bytes) -> None:
    """By a problem document, and the connection is closed."""
    stopping, told = asyncio.Event(), list[str]()
    served = serve(shop(), Address("127.0.0.1", 0), worker=False, stopping=stopping, announce=told.append)
    task = asyncio.create_task(served)
    await wait_until(lambda: told)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(told[0].rpartition(":")[2]))
    writer.write(sent)
    head, _, body = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
    writer.close()
    stopping.set()
    await asyncio.wait_for(task, 10)
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n") and b"application/problem+json" in head
    assert json.loads(body)["code"] == "invalid_request"
