"""The outbox port: events that were written with the change that caused them, until a bus has them.

Rows are marked one by one, never passed by a cursor: a transaction that began early and commits late is not missed.
`Completion.events` and `NodeEnding.events` put rows in with the end of a job or node; `ForeignIntake.insert_events_on`
in the caller's transaction; `Inbox.accept` with the effect of another event.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from headrace.model.event import Event, OutboxRow, OutboxStats, Outgoing, ParkedEvent
from headrace.model.session import LeaderTerm


class Outbox(Protocol):
    """Durable events. All methods raise StoreUnavailableError when the store cannot answer."""

    async def insert_events(self, events: Sequence[Outgoing]) -> None:
        """Insert rows in one transaction and hint "events"; an id that is known changes nothing."""
        ...

    async def waiting_events(self, *, limit: int, without: Sequence[str] = ()) -> list[OutboxRow]:
        """Return waiting rows, those inserted first first. Neither parked rows nor held ones are among them.

        Nor are those of topics `without`, which do not count for `limit`.
        """
        ...

    async def mark_published(self, positions: Sequence[int]) -> None:
        """Remove rows that the bus has; the events stay in the log of events."""
        ...

    async def park_events(self, errors: Sequence[tuple[int, str]], *, term: LeaderTerm) -> None:
        """Put by waiting rows that the bus will never take, by position, each with the reason.

        Raises TermOverError: nothing was changed.
        """
        ...

    async def hold_events(self, positions: Sequence[int], *, term: LeaderTerm) -> list[int]:
        """Let waiting rows wait behind a parked one of their topic and key; return those whose key has one.

        The others' parked row is gone meanwhile: they go on waiting. Raises TermOverError, also where no position is
        given: nothing was changed.
        """
        ...

    async def outbox_stats(self) -> OutboxStats:
        """Return how full the outbox is."""
        ...

    async def list_parked(self, *, limit: int) -> list[ParkedEvent]:
        """Return parked rows, the oldest first."""
        ...

    async def release_parked(self, positions: Sequence[int], *, drop: bool) -> list[int]:
        """Let parked rows be tried again at their place, or `drop` them; what is held behind them waits again.

        Returns those that were parked.
        """
        ...

    async def list_events(self, *, correlation_id: str | None = None, aggregate_id: str | None = None, after: str = "",
                          limit: int = 100) -> list[Event]:  # fmt: skip
        """Return events of the log in the order they were inserted; `after`: those behind the event of that id.

        For looking, not for following: what commits late stands before what was read already. An id that is not there
        stands before all.
        """
        ...

    async def prune_events(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` published events of the log that happened longer ago."""
        ...
