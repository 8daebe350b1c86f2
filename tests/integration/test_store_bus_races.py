"""From outbox to group over PostgreSQL, while writers race, relays replace each other and members come and go."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

from headrace.buses.stored import StoreBus
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.relay import Relay, RelayOptions
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import decode
from headrace.model.event import Event, outgoing
from headrace.model.message_log import Partition
from headrace.model.session import Role
from headrace.ports.bus import Subscription, SubscriptionOptions
from headrace.ports.stores import EventStores, Stores
from tests.backends.postgres import open_test_stores
from tests.waiting import wait_until

KEYS, EACH = [f"k{number}" for number in range(8)], 15


class Witness:
    """What all members of the group have handled, in the order of handling; `held` says who reads what."""

    def __init__(self) -> None:
        self.seen: dict[str, list[int]] = defaultdict(list)

    def note(self, key: str, number: int) -> None:
        """A message was handled."""
        self.seen[key].append(number)

    @property
    def complete(self) -> bool:
        """Whether every event came."""
        return all(set(self.seen[key]) == set(range(EACH)) for key in KEYS)

    def first_comings(self, key: str) -> list[int]:
        """Return the events of a key in the order in which they came first."""
        return list(dict.fromkeys(self.seen[key]))


async def read(bus: StoreBus, witness: Witness, rounds: int | None) -> None:
    """Be a member for so many rounds, or until cancelled; messages are handled as they are received."""
    done: dict[Partition, int] = {}

    async def revoked(places: Sequence[Partition]) -> dict[Partition, int]:
        return {place: done.pop(place) for place in places if place in done}

    def lost(places: Sequence[Partition]) -> None:
        for place in places:
            done.pop(place, None)

    subscription = await bus.subscribe(SubscriptionOptions("g", ("outbox.event.*",), revoked, lost))
    try:
        while rounds is None or rounds > 0:
            await _turn(subscription, witness, done)
            rounds = None if rounds is None else rounds - 1
    finally:
        await subscription.close()


async def _turn(subscription: Subscription, witness: Witness, done: dict[Partition, int]) -> None:
    for delivery in await subscription.receive(limit=20, timeout=0.05):
        event = decode(delivery.message)
        assert event is not None
        witness.note(event.aggregate_id, event.payload)
        done[delivery.place] = delivery.offset + 1
    await subscription.commit(dict(done))


async def write(events: EventStores, key: str) -> None:
    """Emit the events of a key one after the other, as its only writer."""
    for number in range(EACH):
        await events.outbox.insert_events([outgoing(Event("Shop.Thing.Happened", "Thing", key, number))])


@asynccontextmanager
async def relay(stores: Stores, events: EventStores, bus: StoreBus) -> AsyncIterator[None]:
    """Relay with small batches while it leads."""
    leadership = Leadership(stores, uuid4(), timedelta(milliseconds=20), role=Role.RELAY)
    options = RelayOptions(batch=17, interval=timedelta(milliseconds=20))
    loop = Relay(events.outbox, bus, leadership, Telemetry(), options)
    leadership.start()
    loop.start()
    yield
    await loop.stop()
    await leadership.stop()
    await leadership.resign()


async def test_every_event_comes_and_those_of_a_key_in_their_order() -> None:
    """Eight writers, three relays after one another, and members that leave after some rounds while one stays."""
    draw = random.Random(8)
    async with open_test_stores(None) as stores:
        assert stores.events is not None
        events, witness = stores.events, Witness()
        poll = timedelta(milliseconds=30)
        bus = StoreBus(events.log, stores.notifier, partitions=4, lease=timedelta(milliseconds=600), poll=poll)
        writers = [asyncio.create_task(write(events, key)) for key in KEYS]
        members = [asyncio.create_task(read(bus, witness, draw.randint(2, 20))) for _ in range(4)]
        stayer = asyncio.create_task(read(bus, witness, None))
        for _ in range(2):
            async with relay(stores, events, bus):
                await wait_until(lambda: len(witness.seen) > 2)
        async with relay(stores, events, bus):
            await asyncio.gather(*writers, *members)
            await wait_until(lambda: witness.complete)
        stayer.cancel()
        await asyncio.gather(stayer, return_exceptions=True)
        assert (await events.outbox.outbox_stats()).waiting == 0
        assert set((await events.log.log_backlog("g")).values()) == {0}
        for key in KEYS:
            assert witness.first_comings(key) == list(range(EACH))
