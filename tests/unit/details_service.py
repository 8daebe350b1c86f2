"""A small service of details on loopback, which cuts its streams where a test says, and notes what it was asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

BATCH = "01980000-0000-7000-8000-000000000000"
PREFIX = "/api/v1/details"
ACCEPTED = {"batch_id": BATCH, "correlation_id": BATCH, "expected_seconds": 3.2, "promised": True, "detail": ""}


def entries(count: int, /, **ending: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the feed of a batch of items."""
    items = [
        ("item", {"name": f"Name {number}", "description": "A thing.", "attributes": {}}) for number in range(count)
    ]
    first = ("first_response", {"items": min(count, 2), "seconds": 0.8})
    end = {"status": "completed", "delivered": count, "count": count, "seconds": 1.5, "calls": 1, **ending}
    return [("accepted", {"count": count}), *items[:2], first, *items[2:], ("completed", end)]


@dataclass
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class FakeService:
    """Answers from lists; what is listed for a path first is answered first, and the last answer again and again."""

    feed: Sequence[tuple[str, Mapping[str, Any]]] = ()
    #: How many entries each stream may bring before it is cut; then none is cut.
    cuts: list[int] = field(default_factory=list)
    #: Status and document by method and path.
    answers: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def of(self, method: str) -> list[Asked]:
        """Return the requests of a method."""
        return [one for one in self.asked if one.method == method]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of one connection."""
        try:
            asked = await _read(reader)
            self.asked.append(asked)
            if asked.path.endswith("/events"):
                await self._stream(asked, writer)
            else:
                await self._answer(asked, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        listed = self.answers.get(
            f"{asked.method} {asked.path}", [(404, {"code": "not_found", "detail": "no such thing"})]
        )
        status, document = listed.pop(0) if len(listed) > 1 else listed[0]
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\nlocation: /there\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async def _stream(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        _chunk(writer, "retry: 20\n\n: here\n\n")
        most = self.cuts.pop(0) if self.cuts else len(self.feed)
        after = int(asked.headers.get("last-event-id", "0"))
        for seq, (kind, data) in list(enumerate(self.feed, 1))[after : after + most]:
            _chunk(writer, f"id: {seq}\nevent: {kind}\ndata: {json.dumps(data)}\n\n")
        if after + most >= len(self.feed):
            writer.write(b"0\r\n\r\n")
        await writer.drain()


def _chunk(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(body) if body else None)


@asynccontextmanager
async def fake_service(service: FakeService) -> AsyncIterator[FakeService]:
    """Serve on a free port of loopback while the block runs."""
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield service


@contextmanager
def service_thread(service: FakeService) -> Iterator[FakeService]:
    """Serve in a thread while the block runs, for commands that have an event loop of their own."""
    loop, started, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with fake_service(service):
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert started.wait(20), "the service did not start"
        yield service
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
