"""Parts of streamed answers on disk while these are on their way, so that what has come survives the process.

Every statement is a transaction of its own, with a commit to wait for; so those of all streams of an event loop are
written together. Best effort: a store that is away costs the safety of these parts, not the answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from uuid import UUID

from headrace.llm.coalescing import Coalescer
from headrace.model.calls import SpooledPart
from headrace.model.errors import HeadraceError

LOG = logging.getLogger("headrace.llm")

#: What came in less time than this may be lost with the process.
SPOOL_SECONDS = 1.0
#: Whoever gives up an answer waits no longer for its parts.
_PATIENCE_SECONDS = 5.0


class Spooler:
    """Sends through `write` what came of all calls, `SPOOL_SECONDS` after the first of it."""

    def __init__(self, write: Callable[[list[SpooledPart]], Awaitable[Sequence[None]]]) -> None:
        self._line: Coalescer[SpooledPart, None] = Coalescer(write)
        # A set that is in order.
        self._waiting: dict[Spool, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def send_soon(self, spool: Spool) -> None:
        """Let a spool send its parts when the time has come."""
        self._waiting[spool] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SPOOL_SECONDS, self._send_all)

    def forget(self, spool: Spool) -> None:
        """Ask a spool for nothing more."""
        self._waiting.pop(spool, None)

    def put(self, part: SpooledPart) -> asyncio.Future[None]:
        """Send a part at once, behind those that were put before. Cancelling takes back what is not under way yet."""
        return self._line.put(part)

    async def drain(self, longest: timedelta) -> None:
        """Wait until what was put is written, for `longest` at most, and give up the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._line.drain(longest)

    def _send_all(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for spool in waiting:
            spool.send()


class Spool:
    """The parts of one call's answer, numbered in order and without a gap."""

    def __init__(self, call: UUID, spooler: Spooler) -> None:
        self._call, self._spooler = call, spooler
        self._fresh: list[str] = []
        self._count = 0
        self._under_way: set[asyncio.Future[None]] = set()

    def add(self, text: str) -> None:
        """Store a part soon."""
        self._fresh.append(text)
        self._spooler.send_soon(self)

    def send(self) -> None:
        """Have written at once what came since the last time."""
        text, self._fresh = "".join(self._fresh), []
        if not text:
            return
        future = self._spooler.put(SpooledPart(self._call, self._count, text))
        self._count += 1
        self._under_way.add(future)
        future.add_done_callback(self._written)

    def close(self) -> None:
        """End without storing more: the whole answer is about to be stored, or nobody knows how it ends.

        What is under way with parts of others is not called back: it is written before the call's end, or not at all.
        """
        self._spooler.forget(self)
        for future in tuple(self._under_way):
            future.cancel()

    async def flush(self) -> None:
        """Store what has come so far; what is closed meanwhile does not take it back."""
        self._spooler.forget(self)
        self.send()
        if self._under_way:
            parts, self._under_way = self._under_way, set()
            await asyncio.wait(parts, timeout=_PATIENCE_SECONDS)

    def _written(self, part: asyncio.Future[None]) -> None:
        self._under_way.discard(part)
        error = None if part.cancelled() else part.exception()
        if error is not None and not isinstance(error, HeadraceError):
            LOG.error("parts of a model's answer (%s) could not be stored", self._call, exc_info=error)
