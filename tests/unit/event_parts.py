"""A bus that a test feeds by hand, and short words for what agents are given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.model.errors import BusUnavailableError
from headrace.model.event import Message
from headrace.model.message_log import Partition
from headrace.ports.bus import Bus, Delivery, Subscription, SubscriptionOptions

TOPIC = "outbox.event.Thing"


def delivery(offset: int, key: str = "k", *, partition: int = 0, value: bytes = b"{}") -> Delivery:
    """Return a message as it is received."""
    return Delivery(Message(TOPIC, key, value), partition, offset)


@dataclass
class HandBus(Bus):
    """One subscription; what a test puts in is received, what is committed is noted."""

    committed: dict[Partition, int] = field(default_factory=dict)
    paused: set[Partition] = field(default_factory=set)
    #: How often it is away before somebody can join.
    away: int = 0
    options: SubscriptionOptions | None = None
    closed: bool = False
    #: How many commits fail.
    commits_fail: int = 0
    #: How often somebody received.
    received: int = 0
    arrived: asyncio.Queue[Delivery] = field(default_factory=asyncio.Queue)

    def put(self, *deliveries: Delivery) -> None:
        """Let messages come."""
        for one in deliveries:
            self.arrived.put_nowait(one)

    async def publish(self, messages: Sequence[Message]) -> list[str | None]:
        """Take nothing: consumers do not publish."""
        raise AssertionError(f"nobody publishes here: {messages}")

    async def subscribe(self, options: SubscriptionOptions) -> Subscription:
        """Join, once the bus is there."""
        if self.away:
            self.away -= 1
            raise BusUnavailableError("away")
        self.options = options
        return HandSubscription(self)

    async def close(self) -> None:
        """Nothing is open."""

    async def revoke(self, *places: Partition) -> dict[Partition, int]:
        """Take partitions away with notice; return what is to be committed."""
        assert self.options is not None
        return await self.options.on_revoked(places)

    def lose(self, *places: Partition) -> None:
        """Take partitions away without a word."""
        assert self.options is not None
        self.options.on_lost(places)


@dataclass
class HandSubscription(Subscription):
    """The one member of the group."""

    bus: HandBus

    async def receive(self, *, limit: int, timeout: float) -> list[Delivery]:
        """Return what a test put in, or wait for a moment: time is not what is tested."""
        self.bus.received += 1
        try:
            async with asyncio.timeout(min(timeout, 0.01)):
                first = await self.bus.arrived.get()
        except TimeoutError:
            return []
        found = [first]
        while len(found) < limit and not self.bus.arrived.empty():
            found.append(self.bus.arrived.get_nowait())
        return found

    async def commit(self, offsets: dict[Partition, int]) -> None:
        """Note offsets; they never go back."""
        if self.bus.commits_fail:
            self.bus.commits_fail -= 1
            raise BusUnavailableError("away")
        for place, offset in offsets.items():
            assert offset >= self.bus.committed.get(place, 0), "an offset went back"
            self.bus.committed[place] = offset

    def pause(self, places: Sequence[Partition]) -> None:
        """Note what is paused."""
        self.bus.paused.update(places)

    def resume(self, places: Sequence[Partition]) -> None:
        """Note what goes on."""
        self.bus.paused.difference_update(places)

    async def close(self) -> None:
        """Leave."""
        self.bus.closed = True
