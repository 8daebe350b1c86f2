"""The feed store port on Redis: ordered logs without gaps. One script per verb, so numbers are given in its order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from headrace.model.feed import Entry, NewEntry, check_entries, hint_topic
from headrace.model.session import LeaderTerm
from headrace.stores.redis import pruning
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.notifier import RedisNotifier
from headrace.stores.redis.rows import instant


class RedisFeedStore:
    """`ports.feed_store.FeedStore` over streams."""

    def __init__(self, namespace: Namespace, notifier: RedisNotifier) -> None:
        self._namespace, self._notifier = namespace, notifier

    async def append_entries(self, feed: str, entries: Sequence[NewEntry]) -> list[int]:
        """Append entries whose keys are new, and hint."""
        check_entries(feed, entries)
        if not entries:
            return []
        words = [word for entry in entries for word in (entry.type, entry.data, entry.key or "")]
        count, numbers = await self._namespace.run("append_entries", feed, *words)
        if count:
            self._notifier.hint(hint_topic(feed))
        return list(numbers)

    async def read_feed(self, feed: str, *, after: int, limit: int) -> list[Entry]:
        """Return entries behind a number."""
        return [_entry(*row) for row in await self._namespace.run("read_feed", feed, after, limit)]

    async def feed_end(self, feed: str) -> int:
        """Return the last number."""
        return int(await self._namespace.run("feed_end", feed))

    async def prune_feeds(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old entries, and feeds that have none left; nothing under a term that is over."""
        return await pruning.prune_feeds(self._namespace, older_than, limit=limit, term=term)


def _entry(place: str, row: Sequence[Any]) -> Entry:
    fields = dict(zip(row[::2], row[1::2], strict=True))
    number, _, _ = place.partition("-")
    return Entry(int(number), fields["type"], fields["data"], fields["key"] or None, instant(fields["at"]))
