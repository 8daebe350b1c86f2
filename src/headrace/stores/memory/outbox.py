"""The outbox in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.event import Event, OutboxRow, OutboxStats, Outgoing, ParkedEvent
from headrace.model.session import LeaderTerm, TermOverError
from headrace.ports.notifier import Notifier
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.outbox_rows import EVENTS, HELD, PARKED, WAITING, OutboxTable, Waiting
from headrace.stores.memory.state import State, atomic

_FIRST = UUID(int=0)


class MemoryOutbox:
    """`ports.outbox.Outbox` over dicts; the port says what each verb promises."""

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier

    @property
    def _table(self) -> OutboxTable:
        return self._state.outbox

    @atomic
    async def insert_events(self, events: Sequence[Outgoing]) -> None:
        """Insert rows, all or none."""
        if events:
            self._table.insert(events, self._state.now())
            self._notifier.hint(EVENTS)

    @atomic
    async def waiting_events(self, *, limit: int, without: Sequence[str] = ()) -> list[OutboxRow]:
        """Return waiting rows in their order, but those of some topics."""
        rows = ((position, row) for position, row in self._table.rows.items() if row.state == WAITING)
        chosen = (one for one in rows if one[1].outgoing.topic not in without)
        return [OutboxRow(position, row.outgoing) for position, row in islice(chosen, limit)]

    @atomic
    async def mark_published(self, positions: Sequence[int]) -> None:
        """Remove rows that the bus has; a parked one stays for its operator, since others may be held behind it."""
        for position in positions:
            row = self._table.rows.get(position)
            if row is not None and row.state != PARKED:
                self._table.remove(position)

    @atomic
    async def park_events(self, errors: Sequence[tuple[int, str]], *, term: LeaderTerm) -> None:
        """Put waiting rows by."""
        self._check(term)
        for position, error in errors:
            row = self._table.rows.get(position)
            if row is not None and row.state == WAITING:
                row.state, row.error, row.parked_at = PARKED, error, self._state.now()

    @atomic
    async def hold_events(self, positions: Sequence[int], *, term: LeaderTerm) -> list[int]:
        """Hold waiting rows behind the parked ones of their topics and keys."""
        self._check(term)
        rows, parked = self._table.rows, self._table.lanes_with(PARKED)
        behind = [place for place in sorted(set(positions)) if _waits_in(rows.get(place), parked)]
        for position in behind:
            rows[position].state = HELD
        return behind

    @atomic
    async def outbox_stats(self) -> OutboxStats:
        """Return how full the outbox is."""
        states, now = [row.state for row in self._table.rows.values()], self._state.now()
        oldest = min((row.created_at for _, row in self._table.in_state(WAITING)), default=now)
        seconds = max(0.0, (now - oldest).total_seconds())
        return OutboxStats(states.count(WAITING), states.count(HELD), states.count(PARKED), seconds)

    @atomic
    async def list_parked(self, *, limit: int) -> list[ParkedEvent]:
        """Return parked rows, the oldest first."""
        held = [row.lane for _, row in self._table.in_state(HELD)]
        parked = [_parked(position, row, held.count(row.lane)) for position, row in self._table.in_state(PARKED)]
        return sorted(parked, key=lambda event: (event.parked_at, event.position))[:limit]

    @atomic
    async def release_parked(self, positions: Sequence[int], *, drop: bool) -> list[int]:
        """Let parked rows, and what nothing parked holds any more, wait again."""
        rows = self._table.rows
        released = [place for place in sorted(set(positions)) if place in rows and rows[place].state == PARKED]
        for position in released:
            row = rows[position]
            row.state, row.error, row.parked_at = WAITING, "", None
            if drop:
                self._table.remove(position)
        parked = self._table.lanes_with(PARKED)
        for _, row in self._table.in_state(HELD):
            if row.lane not in parked:
                row.state = WAITING
        if released:
            self._notifier.hint(EVENTS)
        return released

    @atomic
    async def list_events(self, *, correlation_id: str | None = None, aggregate_id: str | None = None, after: str = "",
                          limit: int = 100) -> list[Event]:  # fmt: skip
        """Return events of the log, as they were inserted."""
        known, first = list(self._table.log), _parse(after)
        begin = known.index(first) + 1 if first in self._table.log else 0
        chosen = (
            event
            for event in map(self._table.log.__getitem__, known[begin:])
            if correlation_id in (None, event.correlation_id) and aggregate_id in (None, event.aggregate_id)
        )
        return list(islice(chosen, limit))

    @atomic
    async def prune_events(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old events that no row waits to send; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        until, table = self._state.now() - older_than, self._table
        old = (key for key, event in table.log.items() if event.time and event.time <= until)
        chosen = list(islice((key for key in old if key not in table.unsent), limit))
        for event_id in chosen:
            del table.log[event_id]
        return len(chosen)

    def _check(self, term: LeaderTerm) -> None:
        if not leads(self._state, term):
            raise TermOverError


def _waits_in(row: Waiting | None, lanes: set[tuple[str, str]]) -> bool:
    return row is not None and row.state == WAITING and row.lane in lanes


def _parked(position: int, row: Waiting, held: int) -> ParkedEvent:
    event = row.outgoing.event
    event_id, kind = (None, None) if event is None else (event.id, event.type)
    assert row.parked_at is not None
    return ParkedEvent(position, *row.lane, event_id, kind, row.error, row.parked_at, held)


def _parse(after: str) -> UUID:
    try:
        return UUID(after) if after else _FIRST
    except ValueError:
        raise InvalidInputError("after", "must be the id of an event, a UUID", after) from None
