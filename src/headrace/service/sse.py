"""Feeds as server-sent events: `id` is the number of an entry, `event` its type, `data` its JSON.

Guaranteed to a client that comes again with the last id it has seen, by the header `Last-Event-ID` or `?after=`: every
entry behind it, once and in order, from any process that serves the app.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from starlette.types import Receive, Scope, Send

from headrace.engine.feeds.follower import Follower
from headrace.engine.feeds.hub import FeedHub
from headrace.model.feed import Entry
from headrace.service.problems import RequestError
from headrace.service.streams import Streams

#: Seconds between two signs of life, and seconds that a client may leave what was sent to it unread.
PING_SECONDS, SLOW_SECONDS = 15.0, 30.0
PING = b": ping\n\n"
#: Milliseconds after which a browser comes again.
RETRY = b"retry: 1000\n\n"
MEDIA_TYPE = "text/event-stream"
#: A stream may be sent by proxies as it comes.
HEADERS = {"x-accel-buffering": "no"}
#: What the document of the service says of streams.
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "entries as they come: `id` is the number, `event` the type, `data` JSON; ends with the last",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    },
    204: {"description": "the last entry was seen: nothing will follow, do not come again"},
}

#: Whether an entry is the last one of its feed.
Until = Callable[[Entry], bool]


def _never(_: Entry) -> bool:
    return False


def last_seen(
    header: Annotated[str | None, Header(alias="Last-Event-ID", description="the last id that was seen")] = None,
    after: Annotated[str | None, Query(description="as the header, which wins")] = None,
) -> int:
    """Return the number of the last entry that a client has seen, 0 of a new one. Raises RequestError 400."""
    text = after if header is None else header
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        name = "after" if header is None else "Last-Event-ID"
        raise RequestError(400, "invalid_request", f"{name} must be the id of an event, a number, got {text[:40]!r}")
    return int(text)


LastSeen = Annotated[int, Depends(last_seen)]


@dataclass(frozen=True, slots=True)
class Source:
    """What is streamed: a feed up to the entry that `until` says is the last, grown by what is entered meanwhile."""

    feed: str
    until: Until = _never
    grows: AbstractAsyncContextManager[None] = field(default_factory=nullcontext)


async def stream(source: Source, request: Request, after: int) -> Response:
    """Answer with a feed from behind a number on, as it grows; 204 where its last entry was seen.

    Raises RequestError: 400 for a number that the feed has not reached, 503 where too many streams are open.
    """
    streams: Streams = request.app.state.streams
    hub: FeedHub = request.app.state.headrace.runtime.feeds
    streams.check()
    if after:
        end = await hub.end(source.feed)
        if after > end:
            rule = f"the id {after} is not reached yet, this feed ends at {end}"
            raise RequestError(400, "invalid_request", f"{rule}: begin without Last-Event-ID and after")
        seen = await hub.read(source.feed, after=after - 1, limit=1)
        if seen and seen[0].seq == after and source.until(seen[0]):
            return Response(status_code=204)
    return EventStream(streams, hub, source, after)


class EventStream(Response):
    """A feed that is sent as it grows, until its last entry, the end of the client or that of the service."""

    media_type = MEDIA_TYPE

    def __init__(self, streams: Streams, hub: FeedHub, source: Source, after: int) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._streams, self._hub, self._source, self._after = streams, hub, source, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, and end it well: a connection that nobody reads from is cut."""
        pump = asyncio.create_task(self._pump(send), name="headrace-stream")
        left = asyncio.create_task(_gone(receive), name="headrace-stream-client")
        with self._streams.counted(pump):
            try:
                await asyncio.wait([pump, left], return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone = left.done()
                for task in (pump, left):
                    task.cancel()
                (error, _) = await asyncio.gather(pump, left, return_exceptions=True)
        if isinstance(error, TimeoutError):
            self._streams.cut(scope["client"])
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await _gone(receive)
        elif not gone:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
        if isinstance(error, Exception) and not isinstance(error, TimeoutError):
            raise error

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await _send(send, RETRY)
        source = self._source
        async with source.grows, self._hub.follower(source.feed, after=self._after) as follower:
            async for entries in _pages(follower):
                await _send(send, b"".join(map(frame, entries)) or PING)
                if any(map(source.until, entries)):
                    return


async def _pages(follower: Follower) -> AsyncGenerator[Sequence[Entry], None]:
    """Yield what comes, and nothing where nothing came for a while."""
    while True:
        entries: Sequence[Entry] = ()
        with suppress(TimeoutError):
            async with asyncio.timeout(PING_SECONDS):
                entries = await follower.more()
        yield entries


async def _send(send: Send, body: bytes) -> None:
    """Send a part once there is room for it. Raises TimeoutError for a client that does not read."""
    async with asyncio.timeout(SLOW_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    """Return when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def frame(entry: Entry) -> bytes:
    r"""Return an entry as an event.

    >>> from datetime import UTC, datetime
    >>> frame(Entry(7, "item", '{"index":0}', None, datetime.now(UTC)))
    b'id: 7\nevent: item\ndata: {"index":0}\n\n'
    """
    return f"id: {entry.seq}\nevent: {entry.type}\ndata: {entry.data}\n\n".encode()
