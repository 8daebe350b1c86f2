"""Feeds as server-sent events: `id` is the number of an entry, `event` its type, `data` its JSON.

Guaranteed to a client that comes again with the last id it has seen, by the header `Last-Event-ID` or `?after=`: every
entry behind it, once and in order, from any process that serves the app.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from starlette.types import Receive, Scope, Send

from headrace.engine.feeds.follower import Follower
from headrace.engine.feeds.hub import FeedHub
from headrace.model.feed import Entry
from headrace.service.auth import caller_of
from headrace.service.gate import Gate
from headrace.service.problems import RequestError
from headrace.service.stream_shapes import MEDIA_TYPE
from headrace.service.streams import Streams

#: Seconds between two signs of life, and seconds that a client may leave what was sent to it unread.
PING_SECONDS, SLOW_SECONDS = 15.0, 30.0
PING = b": ping\n\n"
#: Milliseconds after which a browser comes again.
RETRY = b"retry: 1000\n\n"
#: Entries up to the last one seen that are looked through for the one that ends the feed.
LOOK_BACK = 20
#: What browsers say of requests of the service's own pages, and of addresses that people typed.
OWN_SITES = ("same-origin", "none")
#: A stream may be sent by proxies as it comes.
HEADERS = {"x-accel-buffering": "no"}

#: Whether an entry is the last one of its feed.
Until = Callable[[Entry], bool]


def _never(_: Entry) -> bool:
    return False


def _whole(entry: Entry) -> Entry:
    return entry


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
    #: The task in it ends when nothing will come any more.
    grows: AbstractAsyncContextManager[asyncio.Task[None] | None] = field(default_factory=nullcontext)
    #: What is shown of an entry.
    shows: Callable[[Entry], Entry] = _whole
    #: Whether nothing comes any more where the feed has no entry.
    past: bool = False


async def stream(source: Source, request: Request, after: int) -> Response:
    """Answer with a feed from behind a number on, as it grows; 204 where its last entry was seen.

    Raises RequestError: 400 for a number that the feed has not reached, 403 for a page of another site, 410 where
    entries behind it were removed, 503 where too many streams are open.
    """
    check_own_site(request)
    streams: Streams = request.app.state.streams
    hub: FeedHub = request.app.state.headrace.runtime.feeds
    streams.check()
    if (after or source.past) and await _is_over(hub, source, after):
        return Response(status_code=204)
    gate: Gate = request.app.state.gate
    # Once more: others may have come while the feed was looked at.
    streams.check()
    return EventStream(streams, partial(entries_of, hub, source, after), partial(gate.bars, caller_of(request)))


def check_own_site(request: Request) -> None:
    """Refuse a page of another site: it may ask without a question of the browser before. Raises RequestError 403."""
    if request.headers.get("sec-fetch-site", "none").lower() not in OWN_SITES:
        raise RequestError(403, "forbidden_origin", "a page of another site must not follow what happens here")


async def _is_over(hub: FeedHub, source: Source, after: int) -> bool:
    """Whether the last entry of a feed was seen. Raises RequestError 400 and 410 as `stream` does.

    The store is asked and not what this process knows: another one may have sent what was seen.
    """
    seen = await hub.read(source.feed, after=max(after - LOOK_BACK, 0), limit=LOOK_BACK + 1)
    end = seen[-1].seq if seen else await hub.end(source.feed)
    if not end:
        rule = "this feed has no entries: what it had was removed, as entries older than keep_feeds are, or none came"
        fix = "begin without Last-Event-ID and after" if after else "what is followed tells its state when it is read"
        raise RequestError(410, "entries_gone", f"{rule}: {fix}")
    if not seen or after > end:
        rule = f"the id {after} is not reached yet, this feed ends at {end}"
        raise RequestError(400, "invalid_request", f"{rule}: begin without Last-Event-ID and after")
    if after and seen[0].seq > after + 1:
        rule = f"the entries from {after + 1} to {seen[0].seq - 1} were removed, they were older than keep_feeds"
        raise RequestError(410, "entries_gone", f"{rule}: begin without Last-Event-ID and after for those left")
    return any(source.until(entry) for entry in seen if entry.seq <= after)


class EventStream(Response):
    """Parts that are sent as they come, until they end, or the client, its token or the service does."""

    media_type = MEDIA_TYPE

    def __init__(
        self, streams: Streams, parts: Callable[[], AsyncGenerator[bytes, None]],
        barred: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:  # fmt: skip
        """`barred` returns when whoever asked may read no further."""
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._streams, self._parts, self._barred = streams, parts, barred

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, and end it well: a connection that nobody reads from is cut."""
        pump = asyncio.create_task(self._pump(send), name="headrace-stream")
        left = asyncio.create_task(_gone(receive), name="headrace-stream-client")
        barred = asyncio.create_task(self._barred(), name="headrace-stream-token")
        tasks = (pump, left, barred)
        with self._streams.counted(pump):
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone = left.done()
                for task in tasks:
                    task.cancel()
                (error, *_) = await asyncio.gather(*tasks, return_exceptions=True)
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
        async with aclosing(self._parts()) as parts:
            async for part in parts:
                await _send(send, part)


async def entries_of(hub: FeedHub, source: Source, place: int) -> AsyncGenerator[bytes, None]:
    """Yield a feed from behind a number on as events, and signs of life where nothing comes."""
    async with source.grows as grower, hub.follower(source.feed, after=place) as follower:
        async for page in _pages(follower):
            # Whoever misses entries that were removed hears it when it comes again.
            if page and place and page[0].seq > place + 1:
                return
            entries = _up_to(source.until, page)
            yield b"".join(frame(source.shows(entry)) for entry in entries) or PING
            place = entries[-1].seq if entries else place
            if any(map(source.until, entries[-1:])) or (not entries and grower is not None and grower.done()):
                return


def _up_to(until: Until, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return entries up to the first that is the last of its feed: what came behind it is not told."""
    last = next((place for place, entry in enumerate(entries) if until(entry)), len(entries))
    return entries[: last + 1]


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
