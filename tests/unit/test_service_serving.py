"""Serving on a socket: what is announced, what is answered, and the end."""

from __future__ import annotations

import asyncio
import socket

import httpx2
import pytest

from headrace.model.errors import ConfigError
from headrace.service import serving
from headrace.service.serving import Address, serve
from tests.unit.service_calls import shop
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


def test_answers_are_not_held_back() -> None:
    """Connections inherit it from the socket that accepts them; without it each answer takes 40 ms more."""
    with serving._listen(Address("127.0.0.1", 0)) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
