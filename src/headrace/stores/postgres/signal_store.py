"""The signal store port on PostgreSQL: what wakes parked jobs."""

from __future__ import annotations

from datetime import timedelta

from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.rows import HEAD_STARTS
from headrace.stores.postgres.terms import fetch_under


class PostgresSignalStore:
    """`ports.signal_store.SignalStore`. Locks: the row of the key, on which parking waits too, then the woken jobs."""

    def __init__(self, database: Database, notifier: PostgresNotifier) -> None:
        self._database, self._notifier = database, notifier

    async def send_signal(self, key: str, payload: str) -> bool:
        """Store a signal once per key and wake whoever is parked on it, in one statement; then hint."""
        [row] = await self._database.fetch("send_signal", key=key, payload=payload, head_starts=HEAD_STARTS)
        for queue in row["queues"] or ():
            self._notifier.hint(f"queue:{queue}")
        return row["queues"] is not None

    async def read_signal(self, key: str) -> str | None:
        """Return the signal of a key, if it has come."""
        row = await self._database.fetch_one("read_signal", key=key)
        return None if row is None else str(row["payload"])

    async def prune_signals(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` signals that came longer ago, and keys nobody waits for any more."""
        return len(await fetch_under(self._database, term, "prune_signals", retention=older_than, limit=limit))
