"""One who follows a feed: a place in it, and what comes behind that place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from headrace.engine.feeds.tail import Tail
from headrace.model.errors import ConfigError
from headrace.model.feed import Entry

#: Reads behind a place from the store, so many entries at most.
CatchUp = Callable[[int, int], Awaitable[Sequence[Entry]]]
#: Entries given at once: at first, and then as many as have about so many characters of data.
FIRST_PAGE, MOST_PAGE, PAGE_CHARACTERS = 20, 200, 128 << 10


class Follower:
    """Guaranteed: every entry behind its place once, in order; nothing is lost when `more` is cancelled.

    A feed that was forgotten meanwhile, and has begun with 1 again, is followed from its beginning; one whose newest
    entries the store has lost is followed behind those that are left.
    """

    def __init__(self, tail: Tail, place: int, catch_up: CatchUp) -> None:
        self._tail, self._place, self._catch_up = tail, place, catch_up
        self._cuts, self._page = len(tail.cuts), FIRST_PAGE

    async def more(self) -> Sequence[Entry]:
        """Return the next entries, some of those there are, once there are any. Raises ConfigError on closing."""
        tail = self._tail
        while not tail.closed:
            self._place = min([self._place, *tail.cuts[self._cuts :]])
            self._cuts = len(tail.cuts)
            change = tail.change
            known = tail.behind(self._place, self._page)
            found = await self._catch_up(self._place, self._page) if known is None else known
            if found:
                self._place, self._page = found[-1].seq, next_page(found)
                return found
            await change.wait()
        raise ConfigError("the app was closed while a feed was followed; follow it again behind the last entry")


def next_page(entries: Sequence[Entry]) -> int:
    """Return how many entries to ask for, when those that follow are like these.

    >>> from datetime import UTC, datetime
    >>> next_page([Entry(1, "item", "x" * 65_000, None, datetime.now(UTC))])
    2
    """
    each = sum(len(entry.data) for entry in entries) // len(entries) + 1
    return max(1, min(MOST_PAGE, PAGE_CHARACTERS // each))
