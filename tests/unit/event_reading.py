"""Reading streams of server-sent events as a client would that trusts nothing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream."""

    id: int
    type: str
    data: Any


class Stream:
    """One connection that asks for events."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self.status, self.headers = 0, dict[str, str]()

    @classmethod
    async def open(cls, base: str, path: str, *, last: int | None = None) -> Stream:
        """Connect, ask, and read the head of the answer."""
        parts = urlsplit(base)
        made = cls(*await asyncio.open_connection(parts.hostname, parts.port))
        more = "" if last is None else f"Last-Event-ID: {last}\r\n"
        made.writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{more}\r\n".encode())
        head = (await made._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        made.status = int(head[0].split()[1])
        made.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        return made

    async def chunk(self) -> bytes:
        """Return the next piece of the body, nothing at its end."""
        size = int(await self._reader.readline(), 16)
        return (await self._reader.readexactly(size + 2))[:size]

    async def events(self, most: int = 1_000_000) -> list[Event]:
        """Return the events up to the end of the stream, or the first `most`."""
        found: list[Event] = []
        rest = b""
        while len(found) < most and (piece := await self.chunk()):
            *whole, rest = (rest + piece).split(b"\n\n")
            found += [event for event in map(parse, whole) if event is not None]
        return found[:most]

    def close(self) -> None:
        """Cut the connection."""
        self.writer.transport.abort()


def parse(block: bytes) -> Event | None:
    """Return the event of a block; None of a comment and of a time to come again after."""
    fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if line and not line.startswith(":"))
    if "event" not in fields:
        return None
    return Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
