"""What submitters of a campaign do with events: emit them, take them out as a relay does, and accept one as an agent.

All ids are made of the token: done again after a kill, no event and no job is there twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import asyncpg

from headrace.model.event import Event, Message, OutboxRow, Outgoing, outgoing
from headrace.model.inbox import Effect
from headrace.model.job import JobSpec, NewJob
from headrace.model.session import LeaderTerm, Role, TermOverError
from headrace.ports.stores import EventStores
from tests.faults.campaign_tasks import app, mark
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.faults.campaign_clients import Client

#: A killed relay keeps its role for so long.
TERM = timedelta(seconds=2)
#: How long a relay may wait for its turn.
PATIENCE = timedelta(seconds=60)
CONSUMER = "campaign"


async def emit(client: Client) -> None:
    """Insert events, alone, in a transaction and with effects; take them out; count what the log has of them."""
    events = app.event_stores
    key, random = f"emit-{client.token}", Random(client.token)
    *ids, dead, job_id = [UUID(int=random.getrandbits(128), version=4) for _ in range(7)]
    *given, outside, caused, alone = [_event(own, key) for own in ids]
    await events.outbox.insert_events([*given, _message(dead, key)])
    connection = await asyncpg.connect(client.settings.queue.url)
    try:
        await app.emit_on(connection, [outside])
    finally:
        await connection.close()
    job = _job(job_id, client.numbers(1)[0])
    await events.inbox.accept(CONSUMER, client.token, Effect([job], [caused], [(key, "1")]))
    await events.inbox.accept(CONSUMER, f"{client.token}-alone", Effect(events=[alone]))
    await events.inbox.accept_batch(CONSUMER, [f"{client.token}-{number}" for number in range(3)], Effect())
    await _relay(events, key)
    client.acknowledge("emit", jobs=[job.id])
    found = await events.outbox.list_events(aggregate_id=key)
    if {event.id for event in found} != {str(own) for own in ids}:
        client.acknowledge("emit", error=f"the log has other events than were emitted: {found}")


def _event(own: UUID, key: str) -> Outgoing:
    return outgoing(Event("Mill.Sack.Filled", "Sack", key, id=str(own)))


def _message(own: UUID, key: str) -> Outgoing:
    return Outgoing("outbox.event.Sack.dlt", key, message=Message("outbox.event.Sack.dlt", key, b"1"), id=own)


def _job(own: UUID, number: int) -> NewJob:
    return NewJob(JobSpec(mark.name), f'{{"args":[],"kwargs":{{"number":{number}}}}}', id=own)


async def _relay(events: EventStores, key: str) -> None:
    """Work as the relay; one that slept or was stopped until its term was over leads again, as it is told to."""
    while True:
        with suppress(TermOverError):
            return await _lead_relay(events, key)


async def _lead_relay(events: EventStores, key: str) -> None:
    """Lead the relay, put one row by and hold those behind it, let them go in both ways, and take all out."""
    sessions = app.runtime.stores.sessions
    session = uuid4()
    term = await wait_until(lambda: sessions.lead(session, lease=TERM, role=Role.RELAY), PATIENCE)
    assert term is not None
    for drop in (False, True):
        await _put_by(events, await _own(events, key), term)
        parked = [row.position for row in await events.outbox.list_parked(limit=10_000) if row.key == key]
        await events.outbox.release_parked(parked, drop=drop)
    await events.outbox.mark_published([row.position for row in await _own(events, key)])
    await events.outbox.prune_events(older_than=timedelta(days=1), limit=10, term=term)
    await events.inbox.prune_inbox(older_than=timedelta(days=1), limit=10, term=term)
    await sessions.resign(term)


async def _put_by(events: EventStores, rows: Sequence[OutboxRow], term: LeaderTerm) -> None:
    positions = [row.position for row in rows if row.outgoing.event is not None]
    await events.outbox.park_events([(position, "no bus takes it") for position in positions[:1]], term=term)
    await events.outbox.hold_events(positions[1:], term=term)


async def _own(events: EventStores, key: str) -> list[OutboxRow]:
    return [row for row in await events.outbox.waiting_events(limit=10_000) if row.outgoing.key == key]
