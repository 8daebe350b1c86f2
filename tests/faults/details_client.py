"""A client of details over HTTP: it asks for a batch and follows its events, whatever dies on the way."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

#: A request, and a stream that says nothing, are given up after so long and tried again.
PATIENCE_SECONDS = 20.0
#: Pings of the service come more often than this.
SILENCE_SECONDS = 40.0


@dataclass
class Journey:
    """What one batch went through, in seconds after it was asked for."""

    request: Mapping[str, Any]
    batch_id: str = ""
    first_item: float | None = None
    first_response: float | None = None
    completed: float | None = None
    status: str = ""
    items: list[dict[str, Any]] = field(default_factory=list)
    #: Numbers of the entries, as they came.
    numbers: list[int] = field(default_factory=list)
    #: How often it had to be asked for, and how often its stream was opened.
    asks: int = 0
    streams: int = 0
    #: How often it was taken up again behind the entries that had come.
    resumed: int = 0
    #: What was wrong with what came.
    faults: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether everything that was asked for was delivered."""
        return self.status == "completed" and len(self.items) == self.request["count"]

    @property
    def names(self) -> list[str]:
        """The names that were delivered."""
        return [str(item["name"]) for item in self.items]


class DetailsClient:
    """Asks a service; safe for any number of coroutines."""

    def __init__(self, host: str, port: int, token: str = "") -> None:
        self._host, self._port, self._token = host, port, token
        #: Streams that are open now and have said something.
        self.streaming = 0

    async def travel(self, request: Mapping[str, Any], *, cut_after: int = 0) -> Journey:
        """Ask for a batch and follow it to its end; `cut_after`: cut the stream off behind every so many entries."""
        journey, began, key = Journey(request), time.monotonic(), uuid4().hex
        while not journey.batch_id:
            journey.asks += 1
            with suppress(OSError, TimeoutError, EOFError, ValueError):
                status, body = await self.send("POST", "/api/v1/details", request, key=key)
                if status == 202:
                    journey.batch_id = body["batch_id"]
                    break
                if status not in (429, 503):
                    raise AssertionError(f"the service refused a batch: {status} {body}")
            await asyncio.sleep(0.1)
        while journey.completed is None:
            journey.streams += 1
            with suppress(OSError, TimeoutError, EOFError, ValueError):
                await self._follow(journey, began, cut_after)
            if journey.completed is None and not cut_after:
                await asyncio.sleep(0.05)
        return journey

    async def send(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Send a request with JSON and return status and body of the answer."""
        headers = {} if key is None else {"idempotency-key": key}
        async with asyncio.timeout(PATIENCE_SECONDS), self._asked(method, path, body, headers) as (status, given, read):
            length = int(given.get("content-length", 0))
            return status, json.loads(await read.readexactly(length) or b"null")

    async def _follow(self, journey: Journey, began: float, cut_after: int) -> None:
        headers = {"accept": "text/event-stream"}
        if journey.numbers:
            headers["last-event-id"] = str(journey.numbers[-1])
        path = f"/api/v1/details/{journey.batch_id}/events"
        async with self._asked("GET", path, None, headers) as (status, given, read):
            if status != 200:
                if status not in (429, 503):
                    journey.faults.append(f"the stream answered {status}")
                    await asyncio.sleep(0.2)
                return
            assert given.get("transfer-encoding") == "chunked"
            journey.resumed += bool(journey.numbers)
            await self._note_all(journey, read, began, cut_after)

    async def _note_all(self, journey: Journey, read: asyncio.StreamReader, began: float, cut_after: int) -> None:
        seen = 0
        try:
            async for fields in _events(read):
                _note(journey, fields, time.monotonic() - began)
                self.streaming += not seen
                seen += 1
                if journey.completed is not None or seen == cut_after:
                    return
        finally:
            self.streaming -= bool(seen)

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[int, dict[str, str], asyncio.StreamReader]]:
        read, write = await asyncio.open_connection(self._host, self._port)
        try:
            content = b"" if body is None else json.dumps(body).encode()
            sent = {
                "host": f"{self._host}:{self._port}", "connection": "close", "content-length": str(len(content)),
                "content-type": "application/json", **headers,
            }  # fmt: skip
            if self._token:
                sent["authorization"] = f"Bearer {self._token}"
            lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
            write.write("\r\n".join(lines).encode() + content)
            await write.drain()
            async with asyncio.timeout(PATIENCE_SECONDS):
                head = (await read.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in head[1:] if line)
            yield int(head[0].split()[1]), {name.lower(): value.strip() for name, _, value in pairs}, read
        finally:
            write.close()


async def _events(read: asyncio.StreamReader) -> AsyncIterator[dict[str, str]]:
    """Yield the fields of each event of a stream in chunks."""
    text = ""
    while True:
        async with asyncio.timeout(SILENCE_SECONDS):
            size = int((await read.readline()).strip() or b"0", 16)
            chunk = await read.readexactly(size + 2)
        if not size:
            return
        text += chunk[:-2].decode()
        *whole, text = text.replace("\r\n", "\n").split("\n\n")
        for block in whole:
            lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
            if any(name == "id" for name, _, _ in lines):
                yield {name: value for name, _, value in lines}


def _note(journey: Journey, fields: Mapping[str, str], at: float) -> None:
    number, data = int(fields["id"]), json.loads(fields["data"])
    if number != (journey.numbers[-1] if journey.numbers else 0) + 1:
        journey.faults.append(f"entry {number} came behind {journey.numbers[-1:]}")
    journey.numbers.append(number)
    match fields["event"]:
        case "item":
            journey.items.append(data)
            journey.first_item = journey.first_item or at
        case "first_response":
            journey.first_response = at
        case "completed":
            journey.completed, journey.status = at, data["status"]
