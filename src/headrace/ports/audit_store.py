"""The audit store port: who did what, and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from headrace.model.audit import Action, NewAction, Place
from headrace.model.session import LeaderTerm


class AuditStore(Protocol):
    """Durable actions. All methods raise StoreUnavailableError. Times are by the store's clock."""

    async def note_actions(self, actions: Sequence[tuple[NewAction, timedelta]]) -> None:
        """Store actions, each with how long ago it was done. Safe to repeat: ids that are known are left alone."""
        ...

    async def list_actions(
        self, *, before: Place | None = None, limit: int, who: str | None = None, operation: str | None = None
    ) -> list[Action]:
        """Return actions, the newest first; those of one moment by their ids, backwards.

        `before`: only those that stand behind this place, so that pages follow one another. `who`, `operation`: only
        those of one name.
        """
        ...

    async def prune_actions(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` actions that were done longer ago, the oldest first; return how many.

        Under a term that is over nothing happens.
        """
        ...
