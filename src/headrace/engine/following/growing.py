"""Feeds that grow while somebody follows them, each by one task of a process, however many follow it there.

Several processes may let the same feed grow: every entry has a key, so that all of them give it the same number.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from headrace.engine.outage import Outage
from headrace.engine.waiters import Waiters
from headrace.model.errors import NotFoundError, StoreUnavailableError

LOG = logging.getLogger("headrace.feeds")

#: Seconds between looks that found nothing: no sooner than the first after a hint, and no later than the second.
FIRST_GAP, LONGEST_GAP, PATIENCE = 0.02, 0.25, 8
#: Looks at once in a process.
LOOKS_AT_ONCE = 2


class Grower(Protocol):
    """Lets one feed grow."""

    async def look(self) -> bool:
        """Append what has happened; return whether that was something. Raises StoreUnavailableError, NotFoundError."""
        ...

    @property
    def behind(self) -> bool:
        """Whether the last look ended before it had seen all there was, so that others have their turn."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing will happen any more."""
        ...


class Growing:
    """The growers of one open app."""

    def __init__(self, waiters: Waiters) -> None:
        self._waiters = waiters
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._followers: dict[str, int] = {}
        self._turns = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._outage = Outage(LOG, "cannot follow what happens")

    @asynccontextmanager
    async def grown(self, feed: str, make: Callable[[], Grower]) -> AsyncIterator[asyncio.Task[None]]:
        """Let a feed grow until the block ends, and longer while others want it.

        The task ends when nothing will come any more.
        """
        self._followers[feed] = self._followers.get(feed, 0) + 1
        task = self._tasks.get(feed)
        if task is None or task.done():
            task = self._tasks[feed] = asyncio.create_task(self._grow(feed, make()), name="headrace-grower")
        try:
            yield task
        finally:
            self._followers[feed] -= 1
            if not self._followers[feed]:
                del self._followers[feed]
                self._tasks.pop(feed).cancel()

    async def close(self) -> None:
        """Let nothing grow any more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _grow(self, feed: str, grower: Grower) -> None:
        gap, loop = FIRST_GAP, asyncio.get_running_loop()
        while not grower.over:
            mark, began, grew = self._waiters.mark, loop.time(), False
            try:
                async with self._turns:
                    began = loop.time()
                    grew = await grower.look()
                if grower.behind:
                    continue
            except NotFoundError:
                return  # it was pruned
            except StoreUnavailableError as error:
                self._outage.note(error)
            except Exception:
                LOG.exception("the feed %s does not grow, trying again", feed)
            gap = FIRST_GAP if grew else min(gap * 1.5, LONGEST_GAP)
            await self._waiters.change(at_most=PATIENCE * gap, since=mark, looked=max(loop.time() - began, gap / 2))
