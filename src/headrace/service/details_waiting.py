"""What requests for details wait for: their first items, and the end of what was begun before the mode changes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

from headrace.feeds import Feed
from headrace.model.errors import ConflictError

#: Seconds that a request waits for its first response at most.
MOST_WAIT = 30
_WAIT = re.compile(r'(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?=[,;]|$)', re.IGNORECASE)
#: Entries that end the first response.
_FIRST = ("first_response", "completed")

#: Changes the mode, and tells what is left meanwhile.
Change = Callable[[Callable[[str], None]], Awaitable[object]]


def preferred_wait(header: str | None) -> int:
    """Return how many seconds a client prefers to wait (RFC 7240), 0 where it says nothing of it, 30 at most.

    >>> preferred_wait("wait=3"), preferred_wait("respond-async, Wait=100"), preferred_wait(None)
    (3, 30, 0)
    """
    found = _WAIT.search(header or "")
    return min(int(found[1]), MOST_WAIT) if found else 0


async def first_items(feed: Feed, seconds: float) -> list[Mapping[str, Any]] | None:
    """Return the items of the first response of a batch; None where they are not there in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await _until_first(feed)
    return None


async def _until_first(feed: Feed) -> list[Mapping[str, Any]] | None:
    items: list[Mapping[str, Any]] = []
    async with aclosing(feed.follow()) as entries:
        async for entry in entries:
            if entry.type in _FIRST:
                return items
            if entry.type == "item":
                items.append(entry.data)
    return None


class Switch:
    """The change of mode that this process makes; there is at most one."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self.wanted = self.left = ""

    @property
    def runs(self) -> bool:
        """Whether a change has not ended."""
        return self._task is not None and not self._task.done()

    async def make(self, wanted: str, change: Change, seconds: float) -> bool:
        """Make a change, or join the one that is made; return whether it ended within `seconds`. It goes on if not.

        Raises ConflictError while another one is made, and whatever the change raises.
        """
        if self.runs and self.wanted != wanted:
            raise ConflictError(f"the mode is being changed to {self.wanted}: ask for another one when that is done")
        if not self.runs:
            self.wanted, self.left = wanted, ""
            self._task = asyncio.create_task(self._run(change), name="headrace-details-mode")
        assert self._task is not None
        done, _ = await asyncio.wait([self._task], timeout=seconds)
        if not done:
            return False
        self._task.result()
        return True

    async def _run(self, change: Change) -> None:
        await change(self._note)

    def _note(self, left: str) -> None:
        self.left = left
