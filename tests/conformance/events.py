"""What tests of events do again and again: make events, put them into the outbox, read what waits, become the relay."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from headrace.model.event import Event, Message, Outgoing, outgoing
from headrace.model.session import LeaderTerm, Role
from headrace.ports.handle_store import HandleStore
from headrace.ports.inbox import Inbox
from headrace.ports.message_log import MessageLog
from headrace.ports.outbox import Outbox
from headrace.ports.stores import EventStores
from tests.conformance.scenario import ALL, DAY, Scenario

STARTED = "Genesis.Session.Started"
_NUMBERS = count(1)


def event(payload: Any = None, *, key: str = "s-1", **facts: Any) -> Event:
    """Return an event of a session; the later one has the greater id."""
    facts = {"type": STARTED, "aggregate_type": "GenesisSession", "id": str(UUID(int=next(_NUMBERS))), **facts}
    return Event(aggregate_id=key, payload=payload, **facts)


def row(payload: Any = None, **facts: Any) -> Outgoing:
    """Return a row for the outbox with an event of a session."""
    return outgoing(event(payload, **facts))


def raw(value: bytes | None = b"as it is", *, topic: str = "t.dlt", key: str = "s-1", **facts: Any) -> Outgoing:
    """Return a row for the outbox with a message."""
    return Outgoing(topic, key, message=Message(topic, key, value, **facts))


def as_stored(out: Outgoing, now: datetime) -> Outgoing:
    """Return a row with an event as it is read again, put in now."""
    assert out.event is not None
    return replace(out, event=replace(out.event, time=out.event.time or now), id=UUID(out.event.id))


class Events:
    """Short words for what is done with the event stores of a scenario."""

    def __init__(self, on: Scenario, stores: EventStores) -> None:
        self.on, self.stores = on, stores

    @property
    def outbox(self) -> Outbox:
        """The outbox of the backend."""
        return self.stores.outbox

    @property
    def inbox(self) -> Inbox:
        """The inbox of the backend."""
        return self.stores.inbox

    @property
    def log(self) -> MessageLog:
        """The message log of the backend."""
        return self.stores.log

    @property
    def handles(self) -> HandleStore:
        """The handle store of the backend."""
        return self.stores.handles

    async def put(self, *rows: Outgoing) -> list[int]:
        """Put rows into the outbox and return their positions."""
        before = set(await self.positions())
        await self.outbox.insert_events(rows)
        return [position for position in await self.positions() if position not in before]

    async def positions(self) -> list[int]:
        """Return the positions of what waits, in the order in which it would be sent."""
        return [row.position for row in await self.outbox.waiting_events(limit=ALL)]

    async def waiting(self) -> list[Any]:
        """Return the payloads of the events that wait, and the values of the messages."""
        rows = [row.outgoing for row in await self.outbox.waiting_events(limit=ALL)]
        return [out.event.payload if out.event else out.message and out.message.value for out in rows]

    async def logged(self, **facts: Any) -> list[Any]:
        """Return the payloads of the events of the log."""
        return [event.payload for event in await self.outbox.list_events(**facts)]

    async def relay(self, lease: timedelta = 1_000 * DAY) -> LeaderTerm:
        """Become the leader of relays under a fresh session."""
        term = await self.on.stores.sessions.lead(uuid4(), lease=lease, role=Role.RELAY)
        assert term is not None
        return term
