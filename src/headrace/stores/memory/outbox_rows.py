"""The rows of the outbox in memory, and the log of events beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.event import Event, Outgoing

#: The topic of hints that something waits in the outbox.
EVENTS = "events"
WAITING, HELD, PARKED = "waiting", "held", "parked"


@dataclass(slots=True)
class Waiting:
    """A row that no bus has yet: `waiting`, `held` behind a parked one of its topic and key, or `parked`."""

    outgoing: Outgoing
    id: UUID
    created_at: datetime
    state: str = WAITING
    error: str = ""
    parked_at: datetime | None = None

    @property
    def lane(self) -> tuple[str, str]:
        """What is kept in order."""
        return self.outgoing.topic, self.outgoing.key


@dataclass(slots=True)
class OutboxTable:
    """`rows` by position, in that order; `log` keeps events by their id, also once a bus has them."""

    rows: dict[int, Waiting] = field(default_factory=dict)
    log: dict[UUID, Event] = field(default_factory=dict)
    #: Ids of what is in `rows`: an index.
    unsent: set[UUID] = field(default_factory=set)
    last: int = 0

    def insert(self, events: Iterable[Outgoing], now: datetime) -> None:
        """Add rows behind all others, and their events to the log; those whose id is known are left alone."""
        for row_id, outgoing in [(known_by(outgoing), outgoing) for outgoing in events]:
            if row_id in self.log or row_id in self.unsent:
                continue
            if outgoing.event is not None:
                event = replace(outgoing.event, time=outgoing.event.time or now, id=str(row_id))
                self.log[row_id], outgoing = event, replace(outgoing, event=event, id=row_id)
            self.last += 1
            self.rows[self.last] = Waiting(outgoing, row_id, now)
            self.unsent.add(row_id)

    def remove(self, position: int) -> None:
        """Remove a row; its event stays in the log."""
        row = self.rows.pop(position, None)
        if row is not None:
            self.unsent.discard(row.id)

    def in_state(self, state: str) -> list[tuple[int, Waiting]]:
        """Return the rows in a state, in their order."""
        return [(position, row) for position, row in self.rows.items() if row.state == state]

    def lanes_with(self, state: str) -> set[tuple[str, str]]:
        """Return the topics and keys of rows in a state."""
        return {row.lane for row in self.rows.values() if row.state == state}


def known_by(outgoing: Outgoing) -> UUID:
    """Return what a row is known by: the id of its event, or its own. Raises InvalidInputError."""
    if outgoing.event is None:
        if outgoing.message is None:
            raise InvalidInputError("events", "must each have an event or a message", outgoing.topic)
        return outgoing.id
    try:
        return UUID(outgoing.event.id)
    except ValueError:
        raise InvalidInputError("event id", "must be a UUID; leave it out to get one", outgoing.event.id) from None
