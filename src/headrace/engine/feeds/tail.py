"""The end of one feed as a process knows it, shared by all who follow the feed there."""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from headrace.model.feed import Entry

#: Entries that a tail keeps, and characters of their data; who is further behind reads from the store.
MOST_KEPT, MOST_CHARACTERS = 256, 1 << 20
#: Pauses between looks when no hint comes: at first, and after some quiet seconds.
PAUSE, LONGEST_PAUSE, QUIET_SECONDS = 0.5, 2.0, 5.0


class Tail:
    """The newest entries of a feed. One task of the hub extends it; followers only look."""

    def __init__(self) -> None:
        #: The number of the last known entry; None until the store has told it.
        self.end: int | None = None
        #: What was left each time the store had lost the newest entries: 0 of a feed that begins with 1 again.
        self.cuts: list[int] = []
        self.followers = 0
        self.closed = False
        #: Set when the tail has changed, and replaced by another one then: take it before you look.
        self.change = asyncio.Event()
        self._hinted = asyncio.Event()
        self._entries: list[Entry] = []
        self._quiet = 0.0

    def behind(self, place: int, limit: int) -> Sequence[Entry] | None:
        """Return the first entries with numbers above `place`; None where the store has to be asked."""
        if self.end is None:
            return None
        if place >= self.end:
            return ()
        if not self._entries or self._entries[0].seq > place + 1:
            return None
        start = bisect_right(self._entries, place, key=attrgetter("seq"))
        return self._entries[start : start + limit]

    def extend(self, entries: Sequence[Entry]) -> None:
        """Add what the store had behind the end."""
        self._entries.extend(entries)
        self.end = entries[-1].seq
        self._quiet = 0.0
        self._trim()
        self._tell()

    def begin(self, end: int, known: Sequence[Entry]) -> None:
        """Begin with the newest entries of a feed that has such an end; more may have come since."""
        self.end = end
        if known:
            self.extend(known)
        self._tell()

    def cut(self, last: Entry | None) -> None:
        """Take back what the store has no more. `last`: its newest entry; one that is not known is of another feed."""
        kept = bisect_right(self._entries, last.seq, key=attrgetter("seq")) if last else 0
        known = kept > 0 and self._entries[kept - 1] == last
        del self._entries[kept if known else 0 :]
        self.end = last.seq if last and known else 0
        self.cuts.append(self.end)
        self._tell()

    def hint(self) -> None:
        """Say that the feed may have grown."""
        self._hinted.set()

    def heard(self) -> None:
        """Forget the hints so far, before a look that sees what they told of."""
        self._hinted.clear()

    async def wait(self, *, at_least: float) -> bool:
        """Wait for a hint or the time of the next look; return whether the feed has been quiet for long.

        Hints that follow one another faster than `at_least` are answered by one look.
        """
        await asyncio.sleep(at_least)
        pause = PAUSE if self._quiet < QUIET_SECONDS else LONGEST_PAUSE
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._hinted.wait()
                return False
        self._quiet += pause
        return pause == LONGEST_PAUSE

    def _trim(self) -> None:
        """Keep the newest; in pieces, for each cut moves all that is kept."""
        size = sum(len(entry.data) for entry in self._entries)
        while len(self._entries) > 2 * MOST_KEPT or (size > 2 * MOST_CHARACTERS and len(self._entries) > 1):
            cut = max(len(self._entries) // 2, 1)
            size -= sum(len(entry.data) for entry in self._entries[:cut])
            del self._entries[:cut]

    def close(self) -> None:
        """Say that it will not be extended any more."""
        self.closed = True
        self._tell()

    def _tell(self) -> None:
        change, self.change = self.change, asyncio.Event()
        change.set()
