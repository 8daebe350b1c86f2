"""Feeds in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile

from headrace.model.feed import Entry, NewEntry, check_entries, hint_topic
from headrace.model.session import LeaderTerm
from headrace.ports.notifier import Notifier
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.state import State, atomic


@dataclass(slots=True)
class _Feed:
    """One feed; `entries` are those that were not pruned, in order."""

    last: int = 0
    entries: list[Entry] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)


class MemoryFeedStore:
    """`ports.feed_store.FeedStore` over lists; the port says what each verb promises."""

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier
        self._feeds: dict[str, _Feed] = {}

    @atomic
    async def append_entries(self, feed: str, entries: Sequence[NewEntry]) -> list[int]:
        """Append entries whose keys are new, and hint."""
        check_entries(feed, entries)
        row = self._feeds.setdefault(feed, _Feed())
        before, now, numbers = row.last, self._state.now(), []
        for entry in entries:
            known = None if entry.key is None else row.keys.get(entry.key)
            if known is None:
                row.last = known = row.last + 1
                row.entries.append(Entry(known, entry.type, entry.data, entry.key, now))
                if entry.key is not None:
                    row.keys[entry.key] = known
            numbers.append(known)
        if row.last > before:
            self._notifier.hint(hint_topic(feed))
        elif not row.last:
            del self._feeds[feed]
        return numbers

    @atomic
    async def read_feed(self, feed: str, *, after: int, limit: int) -> list[Entry]:
        """Return entries behind a number."""
        row = self._feeds.get(feed)
        if row is None or not row.entries:
            return []
        start = max(after - row.entries[0].seq + 1, 0)
        return row.entries[start : start + limit]

    @atomic
    async def feed_end(self, feed: str) -> int:
        """Return the last number."""
        row = self._feeds.get(feed)
        return 0 if row is None else row.last

    @atomic
    async def prune_feeds(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old entries, and feeds that have none left; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        removed, before = 0, self._state.now() - older_than
        for name, row in list(self._feeds.items()):
            old = sum(1 for _ in takewhile(lambda entry: entry.time <= before, row.entries[: limit - removed]))
            for entry in row.entries[:old]:
                if entry.key is not None:
                    del row.keys[entry.key]
            del row.entries[:old]
            removed += old
            if not row.entries:
                del self._feeds[name]
        return removed
