"""How many streams of events and how many requests the service answers at once, and the end of the streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.service.permits import is_public
from headrace.service.problems import RequestError, problem_of

#: Requests of one process besides its streams: each may hold a body of 1 MiB.
MOST_REQUESTS = 1_000
#: Seconds that a client may leave a part of an answer unread.
SLOW_SECONDS = 30.0

#: Cuts a connection at once, by the address and port of who is at its other end.
Cut = Callable[[tuple[str, int]], None]


def _never() -> bool:
    """Say that there is room: where nothing listens there are no connections."""
    return False


def _cut_nothing(_: tuple[str, int]) -> None:
    """There are no connections where nothing listens."""


class Streams:
    """The streams that are open in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pumps: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.open = 0
        #: Set by whoever listens.
        self.cut: Cut = _cut_nothing
        self.crowded: Callable[[], bool] = _never

    def check(self) -> None:
        """Refuse a stream that is one too many, or comes at the end. Raises RequestError 503."""
        if self._stopping:
            raise RequestError(503, "stopping", "the service stops: connect to another one, or again in a moment")
        if self.open >= self._most:
            why = f"{self._most:,} streams are open, the most that this process serves"
            fix = "try again, start another `headrace serve`, or set service.most_streams"
            raise RequestError(503, "too_many_streams", f"{why}: {fix}")

    @contextmanager
    def counted(self, pump: asyncio.Task[None]) -> Iterator[None]:
        """Count a stream until the block ends; its task is cancelled when the service stops."""
        self.open += 1
        self._pumps.add(pump)
        if self._stopping:
            pump.cancel()
        try:
            yield
        finally:
            self._pumps.discard(pump)
            self.open -= 1

    def stop(self) -> None:
        """End all streams, and let none begin."""
        self._stopping = True
        for pump in list(self._pumps):
            pump.cancel()


class Crowd:
    """Middleware that answers 503 when too many requests run or connections are open; streams have their own bound."""

    def __init__(self, inner: ASGIApp, streams: Streams, most: int = MOST_REQUESTS) -> None:
        self._inner, self._streams, self._most = inner, streams, most
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and is_public(scope):
            await self._answer(scope, receive, send)
            return
        if scope["type"] == "http" and self._running - self._streams.open >= self._most:
            detail = f"{self._most:,} requests run already: try again in a moment"
            await problem_of(RequestError(503, "too_many_requests", detail))(scope, receive, send)
            return
        if scope["type"] == "http" and self._streams.crowded():
            detail = "as many connections as this process takes are open: try again in a moment, on a new one"
            error = RequestError(503, "too_many_connections", detail, headers={"connection": "close"})
            await problem_of(error)(scope, receive, send)
            return
        self._running += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._running -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._inner(scope, receive, self._in_time(scope, send))
        except _SlowClientError:
            self._streams.cut(scope["client"])

    @staticmethod
    def _in_time(scope: Scope, send: Send) -> Send:
        """Give up a client that leaves unread what was sent to it: nobody else would."""

        async def sending(message: Message) -> None:
            try:
                async with asyncio.timeout(SLOW_SECONDS):
                    await send(message)
            except TimeoutError:
                raise _SlowClientError from None

        return sending if scope["type"] == "http" else send


class _SlowClientError(Exception):
    """A client reads nothing of its answer."""
