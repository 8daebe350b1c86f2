"""The signal store port: what wakes parked jobs. A signal is a row, kept also when it comes early."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from headrace.model.session import LeaderTerm


class SignalStore(Protocol):
    """Durable signals. All methods raise StoreUnavailableError when the store cannot answer."""

    async def send_signal(self, key: str, payload: str) -> bool:
        """Store a signal, JSON text, once per key, and wake whoever is parked on it, in one transaction; then hint.

        Return False when the key had its signal before: the first one stands.
        """
        ...

    async def read_signal(self, key: str) -> str | None:
        """Return the signal of a key, if it has come."""
        ...

    async def prune_signals(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` signals that came longer ago, and keys nobody waits for any more.

        Under a `term` that is over nothing is removed; None is an operator, who needs none.
        """
        ...
