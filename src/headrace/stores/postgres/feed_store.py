"""The feed store port on PostgreSQL: ordered logs without gaps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headrace.model.feed import Entry, NewEntry, check_entries, hint_topic
from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Database, Row, Transaction
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.terms import hold_term


class PostgresFeedStore:
    """`ports.feed_store.FeedStore`.

    Locks: the row of a feed, from giving out numbers to the commit. So numbers become visible in their order, and who
    asks for those behind the last it saw misses nothing. Pruning passes over feeds that are being appended to.
    """

    def __init__(self, database: Database, hot: Database, notifier: PostgresNotifier) -> None:
        self._database, self._hot, self._notifier = database, hot, notifier

    async def append_entries(self, feed: str, entries: Sequence[NewEntry]) -> list[int]:
        """Append entries whose keys are new, in one statement, and hint."""
        check_entries(feed, entries)
        if not entries:
            return []
        rows = await self._hot.fetch(
            "append_entries", feed=feed, types=[entry.type for entry in entries],
            texts=[entry.data for entry in entries], keys=[entry.key for entry in entries],
        )  # fmt: skip
        if any(row["fresh"] for row in rows):
            self._notifier.hint(hint_topic(feed))
        return [row["seq"] for row in rows]

    async def read_feed(self, feed: str, *, after: int, limit: int) -> list[Entry]:
        """Return entries behind a number."""
        return [_entry(row) for row in await self._hot.fetch("read_feed", feed=feed, after=after, limit=limit)]

    async def feed_end(self, feed: str) -> int:
        """Return the last number."""
        row = await self._database.fetch_one("feed_end", feed=feed)
        return 0 if row is None else int(row["last_seq"])

    async def prune_feeds(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old entries, and feeds that have none left; nothing under a term that is over."""

        async def work(tx: Transaction) -> int:
            if term is not None and not await hold_term(tx, term):
                return 0
            old = [row["id"] for row in await tx.fetch("hold_old_feeds", retention=older_than, limit=limit)]
            return len(await tx.fetch("prune_feeds", feed_ids=old, retention=older_than, limit=limit)) if old else 0

        return await self._database.run(work)


def _entry(row: Row) -> Entry:
    return Entry(row["seq"], row["type"], row["data"], row["key"], row["appended_at"])
