"""The connections below the SDK: proxies, large requests, and what is read when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from headrace.providers.fault import Progress
from headrace.providers.transport import Connections, OutOfTimeError, Transport, expire, pieces, progress_of_call
from tests.integration.raw_endpoint import Exchange, Handler, RawEndpoint, raw_endpoint
from tests.waiting import wait_until

PIECE = b"x" * 65_536
#: Far more than the sockets of both sides hold.
PIECES = 1_000


def client_of(base_url: str, *, use_proxies: bool = False) -> httpx2.AsyncClient:
    """A client whose connections these are."""
    transport = Transport(Connections(base_url, use_proxies=use_proxies))
    return httpx2.AsyncClient(transport=transport, base_url=base_url)


@asynccontextmanager
async def transport_to(
    handle: Handler, *, use_proxies: bool = False
) -> AsyncIterator[tuple[httpx2.AsyncClient, RawEndpoint]]:
    """A client on the transport, at an endpoint that answers so."""
    async with (
        raw_endpoint(handle) as endpoint,
        client_of(endpoint.settings.base_url, use_proxies=use_proxies) as client,
    ):
        yield client, endpoint


async def test_what_nobody_asks_for_stays_in_the_socket() -> None:
    """A reader that pauses holds the sender back, and costs no memory; then it gets all of it."""
    written = 0

    async def flood(exchange: Exchange) -> None:
        nonlocal written
        await exchange.start()
        for _ in range(PIECES):
            await exchange.send(PIECE)
            written += 1
        exchange.writer.close()

    async with transport_to(flood) as (client, _), client.stream("POST", "/chat", json={}) as response:
        parts = response.aiter_raw()
        size = len(await anext(parts))

        async def stands() -> bool:
            before = written
            await asyncio.sleep(0.05)
            return written == before

        await wait_until(stands)
        assert written < PIECES / 2
        async for part in parts:
            size += len(part)
        assert size == PIECES * len(PIECE)


async def test_what_came_before_a_cut_is_given() -> None:
    """Also where bytes and cut are read in one turn: the text may be paid for."""

    async def cut(exchange: Exchange) -> None:
        await exchange.start(headers={"content-length": "1000"})
        await exchange.send(b"first")
        await exchange.send(b" and last")
        exchange.writer.close()

    got = b""
    async with transport_to(cut) as (client, _), client.stream("POST", "/chat", json={}) as response:
        with pytest.raises(httpx2.RemoteProtocolError):
            async for part in response.aiter_raw():
                got += part
                await asyncio.sleep(0.05)
    assert got == b"first and last"


@pytest.mark.parametrize("whole", [True, False])
async def test_an_answer_that_is_here_does_not_expire(whole: bool) -> None:
    """Whoever has its end in memory gets all of it; one that waits for the server is told."""

    async def answer(exchange: Exchange) -> None:
        await exchange.start()
        await exchange.send(b"first")
        if not whole:
            await asyncio.Event().wait()
        exchange.writer.close()

    async with raw_endpoint(answer) as endpoint:
        connections = Connections(endpoint.settings.base_url, use_proxies=False)
        response = await connections.request("POST", f"{endpoint.settings.base_url}/chat", [], b"{}")
        try:
            if whole:
                await wait_until(response.content.is_eof)
            parts = pieces(response)
            got = [] if whole else [await anext(parts)]
            expire(response)
            if whole:
                assert [part async for part in parts] == [b"first"]
            else:
                with pytest.raises(OutOfTimeError):
                    got.append(await anext(parts))
                assert got == [b"first"]
        finally:
            response.close()
            await connections.aclose()


@pytest.mark.parametrize("size", [1, 3_000_000])
async def test_requests_of_any_size_are_sent_whole(size: int) -> None:
    """Once each, and noted as sent."""

    async def answer(exchange: Exchange) -> None:
        await exchange.answer({"size": len(exchange.body["text"])})

    progress = Progress()
    token = progress_of_call.set(progress)
    try:
        async with transport_to(answer) as (client, endpoint):
            told = (await client.post("/chat", json={"text": "t" * size})).json()
            assert (told, len(endpoint.asked), progress.is_sent) == ({"size": size}, 1, True)
    finally:
        progress_of_call.reset(token)


async def test_an_answer_read_to_its_end_leaves_its_connection_for_the_next() -> None:
    """Nobody's pause stops a connection that serves another call by now."""
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, client_of(base_url) as client:
        for _ in range(3):
            async with asyncio.timeout(10), client.stream("POST", "/chat", json={}) as response:
                assert b"".join([part async for part in response.aiter_raw()]) == b"hello"
    assert opened == 1


@pytest.mark.parametrize(
    ("names", "use_proxies", "direct"),
    [
        ({"http_proxy": "http://127.0.0.1:9"}, True, False),
        ({"http_proxy": "http://127.0.0.1:9"}, False, True),
        ({"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}, True, True),
        ({"all_proxy": "http://127.0.0.1:9"}, True, False),
        ({"https_proxy": "http://127.0.0.1:9"}, True, True),
    ],
)
async def test_proxies_of_the_environment_are_heeded_where_asked(
    names: dict[str, str], use_proxies: bool, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the scheme of the server, but for the hosts that are excepted."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)

    async def answer(exchange: Exchange) -> None:
        await exchange.answer({})

    async with transport_to(answer, use_proxies=use_proxies) as (client, endpoint):
        if direct:
            assert (await client.post("/chat", json={})).status_code == 200
        else:
            with pytest.raises(httpx2.ConnectError):
                await client.post("/chat", json={})
            assert endpoint.asked == []
