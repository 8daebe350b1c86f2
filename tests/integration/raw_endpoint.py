"""An HTTP endpoint whose every byte a test writes itself: for answers that no well-behaved server gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from headrace.model.llm import LLMSettings


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    path: str
    body: Mapping[str, Any]
    writer: asyncio.StreamWriter

    async def start(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send status and headers; the body goes on until the connection closes."""
        lines = [f"HTTP/1.1 {status} X", "connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        await self.start(status, {"content-length": str(len(raw)), **(headers or {})})
        await self.send(raw)

    def cut(self) -> None:
        """Drop the connection."""
        self.writer.transport.abort()


Handler = Callable[[Exchange], Awaitable[None]]


@dataclass
class RawEndpoint:
    """What was asked, and where it listens."""

    port: int
    asked: list[Exchange] = field(default_factory=list)
    #: Set when a client has gone before its answer was whole.
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def settings(self) -> LLMSettings:
        """Settings that point here."""
        return LLMSettings(model="raw-model", base_url=f"http://127.0.0.1:{self.port}/v1", api_key="raw-key")


@asynccontextmanager
async def raw_endpoint(handle: Handler) -> AsyncIterator[RawEndpoint]:
    """Serve on a free port of loopback; `handle` answers each request on a connection of its own."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await _exchange(endpoint, reader, writer, handle)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    endpoint = RawEndpoint(server.sockets[0].getsockname()[1])
    try:
        yield endpoint
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _exchange(
    endpoint: RawEndpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handler
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    exchange = Exchange(head[0].split(" ")[1], json.loads(raw or b"{}"), writer)
    endpoint.asked.append(exchange)
    answering, gone = asyncio.ensure_future(handle(exchange)), asyncio.ensure_future(reader.read())
    await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
    if gone.done() and not answering.done():
        endpoint.abandoned.set()
    answering.cancel()
    gone.cancel()
    await asyncio.gather(answering, gone, return_exceptions=True)
