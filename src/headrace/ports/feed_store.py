"""The feed store port: ordered logs without gaps, which services follow for their clients."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from headrace.model.feed import Entry, NewEntry
from headrace.model.session import LeaderTerm


class FeedStore(Protocol):
    """Durable feeds. All methods raise StoreUnavailableError."""

    async def append_entries(self, feed: str, entries: Sequence[NewEntry]) -> list[int]:
        """Append entries in one transaction, in this order, hint `feed:NAME`, and return their numbers.

        Appends to one feed are served one after another, so that numbers are given in the order of commits. An entry
        whose key the feed has is left alone, and its number is that of the first one; also within `entries`. Nothing
        is hinted where nothing was appended. Safe to call again after an answer was lost, where entries have keys.
        """
        ...

    async def read_feed(self, feed: str, *, after: int, limit: int) -> list[Entry]:
        """Return entries with numbers above `after`, in order; none of a feed that does not exist."""
        ...

    async def feed_end(self, feed: str) -> int:
        """Return the number of the last entry, 0 where there never was one (or the feed was forgotten)."""
        ...

    async def prune_feeds(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` entries that were appended longer ago; return how many.

        A feed keeps its numbers as long as it has an entry; without any it is forgotten, and begins with 1 again.
        Under a term that is over nothing happens.
        """
        ...
