"""Members of groups on a real broker, and messages, for tests of the Kafka bus."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

from headrace.buses.kafka import KafkaBus
from headrace.event_settings import EventSettings
from headrace.model.event import Message
from headrace.model.message_log import Partition
from headrace.ports.bus import Delivery, Subscription, SubscriptionOptions

#: How long a test waits for messages, seconds.
PATIENCE = 30.0


def new_topic() -> str:
    """Name a topic that nobody else uses."""
    return f"test.{uuid4().hex[:12]}"


def numbered(topic: str, count: int, *, first: int = 0, keys: int = 7) -> list[Message]:
    """Return messages whose values are numbers, spread over some keys."""
    return [Message(topic, f"k-{number % keys}", str(number).encode()) for number in range(first, first + count)]


def numbers(deliveries: Sequence[Delivery]) -> list[int]:
    """Return the numbers of such messages."""
    return [int(delivery.message.value or b"-1") for delivery in deliveries]


class Reader:
    """A member of a group and what it saw. `offsets` is what it says to have done when partitions are taken from it."""

    def __init__(self, settings: EventSettings, *topics: str, group: str = "") -> None:
        """It joins by `open`."""
        self.bus = KafkaBus(settings)
        self.got: list[Delivery] = []
        self.offsets: dict[Partition, int] = {}
        self.revoked: list[Partition] = []
        self.lost: list[Partition] = []
        self.options = SubscriptionOptions(
            group or uuid4().hex, topics, self._on_revoked, self.lost.extend, revoke_seconds=5
        )
        self._subscription: Subscription | None = None

    @property
    def subscription(self) -> Subscription:
        """Its membership."""
        assert self._subscription is not None
        return self._subscription

    async def open(self) -> None:
        """Join the group."""
        self._subscription = await self.bus.subscribe(self.options)

    async def read(self, seconds: float = 0.1) -> None:
        """Receive once."""
        self.got += await self.subscription.receive(limit=100, timeout=seconds)

    async def read_until(self, enough: Callable[[], bool]) -> None:
        """Receive until a condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not enough():
            assert time.monotonic() < deadline, f"waited in vain, got {len(self.got)} messages"
            await self.read()

    async def read_count(self, count: int) -> list[Delivery]:
        """Receive until so many messages were seen, and return them all."""
        await self.read_until(lambda: len(self.got) >= count)
        return self.got

    async def _on_revoked(self, places: Sequence[Partition]) -> dict[Partition, int]:
        self.revoked += places
        return {place: offset for place, offset in self.offsets.items() if place in places}


@asynccontextmanager
async def reading(settings: EventSettings, *topics: str, group: str = "") -> AsyncIterator[Reader]:
    """Join a group and leave it."""
    reader = Reader(settings, *topics, group=group)
    try:
        await reader.open()
        yield reader
    finally:
        await reader.bus.close()
