"""The outbox port on PostgreSQL: a log of events, and beside it the rows that no bus has yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.event import Event, OutboxRow, OutboxStats, Outgoing, ParkedEvent
from headrace.model.session import LeaderTerm, TermOverError
from headrace.stores.postgres.database import Database, Row, Transaction
from headrace.stores.postgres.event_rows import event_of, insert_with, outbox_row, slices, storable
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.terms import fetch_under, hold_term

#: The topic of hints that something waits in the outbox.
EVENTS = "events"
_FIRST = UUID(int=0)


class PostgresOutbox:
    """`ports.outbox.Outbox`; `hot` has connections with pinned plans.

    Locks: parked rows by topic, key and position; others by position. Who holds rows back behind a parked one and who
    releases it take turns on the parked row, so that nothing stays held that nothing holds.
    """

    def __init__(self, database: Database, hot: Database, notifier: PostgresNotifier) -> None:
        self._database, self._hot, self._notifier = database, hot, notifier

    async def insert_events(self, events: Sequence[Outgoing]) -> None:
        """Insert rows in one transaction and hint "events"; an id that is known changes nothing."""
        groups = list(slices(events))
        if len(groups) == 1:
            await self._database.fetch("insert_events", **groups[0])
        elif groups:
            await self._database.run(lambda tx: insert_with(tx, events))
        if groups:
            self._notifier.hint(EVENTS)

    async def waiting_events(self, *, limit: int, without: Sequence[str] = ()) -> list[OutboxRow]:
        """Return waiting rows, those inserted first first, but those of topics `without`."""
        rows = await self._hot.fetch("waiting_events", limit=limit, without=list(without))
        return [outbox_row(row) for row in rows]

    async def mark_published(self, positions: Sequence[int]) -> None:
        """Remove rows that the bus has; the events stay in the log of events."""
        if positions:
            await self._hot.fetch("mark_published", positions=sorted(positions))

    async def park_events(self, errors: Sequence[tuple[int, str]], *, term: LeaderTerm) -> None:
        """Put by waiting rows that the bus will never take, by position, each with the reason."""
        ordered = sorted(dict(errors).items())
        values = {"positions": [place for place, _ in ordered], "errors": [storable(error) for _, error in ordered]}
        await self._under(term, "park_events", values)

    async def hold_events(self, positions: Sequence[int], *, term: LeaderTerm) -> list[int]:
        """Let waiting rows wait behind a parked one of their topic and key; return those whose key has one."""
        rows = await self._under(term, "hold_events", {"positions": sorted(positions)})
        return sorted(row["position"] for row in rows)

    async def outbox_stats(self) -> OutboxStats:
        """Return how full the outbox is."""
        row = await self._hot.fetch_one("outbox_stats")
        assert row is not None
        return OutboxStats(**dict(row))

    async def list_parked(self, *, limit: int) -> list[ParkedEvent]:
        """Return parked rows, the oldest first."""
        rows = await self._hot.fetch("list_parked", limit=limit)
        return [ParkedEvent(**{**dict(row), "event_id": _text(row["event_id"], row["type"])}) for row in rows]

    async def release_parked(self, positions: Sequence[int], *, drop: bool) -> list[int]:
        """Let parked rows be tried again at their place, or `drop` them; what is held behind them waits again."""

        async def work(tx: Transaction) -> list[int]:
            locked = await tx.fetch("lock_parked", positions=list(positions))
            # Those alone: behind what was parked since then there may be held rows that nobody would look for.
            own = sorted({row["position"] for row in locked}.intersection(positions))
            rows = await tx.fetch("drop_parked" if drop else "release_parked", positions=own)
            keys = sorted({(row["topic"], row["key"]) for row in locked})
            await tx.fetch("free_held", topics=[topic for topic, _ in keys], keys=[key for _, key in keys])
            return sorted(row["position"] for row in rows)

        released = await self._hot.run(work) if positions else []
        if released:
            self._notifier.hint(EVENTS)
        return released

    async def list_events(self, *, correlation_id: str | None = None, aggregate_id: str | None = None, after: str = "",
                          limit: int = 100) -> list[Event]:  # fmt: skip
        """Return events of the log as they were inserted; `after`: those behind the event of that id."""
        values = {"after": _parse(after), "limit": limit}
        if correlation_id is not None:
            values |= {"correlation_id": correlation_id, "aggregate_id": aggregate_id}
            rows = await self._hot.fetch("events_of_correlation", **values)
        elif aggregate_id is not None:
            rows = await self._hot.fetch("events_of_aggregate", aggregate_id=aggregate_id, **values)
        else:
            rows = await self._hot.fetch("list_events", **values)
        return [event_of(row["id"], row) for row in rows]

    async def prune_events(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` published events of the log that happened longer ago."""
        return len(await fetch_under(self._hot, term, "prune_events", retention=older_than, limit=limit))

    async def _under(self, term: LeaderTerm, name: str, values: dict[str, Any]) -> list[Row]:
        """Run a statement of the relay, if it has positions, and say if its term is over."""

        async def work(tx: Transaction) -> list[Row]:
            await _hold(tx, term)
            return await tx.fetch(name, **values)

        if values["positions"]:
            return await self._hot.run(work)
        await _hold(self._hot, term)
        return []


async def _hold(on: Transaction | Database, term: LeaderTerm) -> None:
    if not await hold_term(on, term):
        raise TermOverError


def _text(event_id: UUID, kind: str | None) -> str | None:
    """Return the id of the event of a row; a message as it is has none."""
    return None if kind is None else str(event_id)


def _parse(after: str) -> UUID:
    try:
        return UUID(after) if after else _FIRST
    except ValueError:
        raise InvalidInputError("after", "must be the id of an event, a UUID", after) from None
