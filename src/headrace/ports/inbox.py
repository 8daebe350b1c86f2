"""The inbox port: which messages a consumer has handled, kept in the transaction of their effects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from headrace.model.inbox import Effect
from headrace.model.session import LeaderTerm


class Inbox(Protocol):
    """Handled messages. All methods raise StoreUnavailableError when the store cannot answer."""

    @property
    def writes(self) -> bool:
        """Whether `Effect.writes` can be done: the store is a database whose connection the user can write on."""
        ...

    async def handled(self, consumer: str, message_id: str) -> bool:
        """Whether a consumer has handled a message; cheap, asked before the work."""
        ...

    async def accept(self, consumer: str, message_id: str, effect: Effect) -> bool:
        """Note that a consumer handled a message, and store the effect, in one transaction; then hint.

        False, and nothing is stored, when it had been noted before. Jobs are inserted as `JobStore.insert_jobs` does,
        signals sent as `SignalStore.send_signal` does. What a write adds to the effect is stored too. What one raises
        passes through, and nothing is stored.
        """
        ...

    async def handled_among(self, consumer: str, message_ids: Sequence[str]) -> frozenset[str]:
        """Return those of messages that a consumer has handled; cheap, asked before the work."""
        ...

    async def accept_batch(self, consumer: str, message_ids: Sequence[str], effect: Effect) -> frozenset[str]:
        """Note that a consumer handled messages together, and store their effect, in one transaction; then hint.

        Returns those that had been noted before: if there is one, nothing is stored, neither the effect nor the notes
        of the others. All else is as with `accept`.
        """
        ...

    async def prune_inbox(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` notes that are older."""
        ...
