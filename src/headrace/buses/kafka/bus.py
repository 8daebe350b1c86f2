"""The bus on Kafka."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.buses.kafka.config import PUBLISH_SECONDS
from headrace.buses.kafka.sender import Sender
from headrace.buses.kafka.subscription import KafkaSubscription
from headrace.buses.kafka.thread import OwnThread
from headrace.event_settings import EventSettings
from headrace.model.event import Message
from headrace.ports.bus import SubscriptionOptions


class KafkaBus:
    """Guaranteed: what `publish` answered None for is kept by all replicas in sync; a key has one partition.

    What is refused keeps back what follows it in the call under its key, and so does what a topic cannot take for now
    (LATER), for which the other topics do not wait long. Not guaranteed: that a message is there once, after LATER and
    BusUnavailableError one that is published again may come twice; and where a broker refuses what we take for
    small enough, what went to it in another batch has overtaken it.
    """

    def __init__(self, events: EventSettings, *, publish_seconds: float = PUBLISH_SECONDS) -> None:
        """Nothing is connected before the first call. Without brokers publish goes on trying for `publish_seconds`."""
        self._events = events
        self._sender = Sender(events, publish_seconds)
        self._thread: OwnThread | None = None
        self._subscriptions: set[KafkaSubscription] = set()

    async def publish(self, messages: Sequence[Message]) -> list[str | None]:
        """Send messages and wait until they are kept; return for each why it will never be, BEHIND, LATER, or None.

        Raises BusUnavailableError if none could be sent, though some may have arrived.
        """
        if self._thread is None:
            self._thread = OwnThread("headrace-kafka-producer")
        return await self._thread.do(lambda: self._sender.send(messages))

    async def subscribe(self, options: SubscriptionOptions) -> KafkaSubscription:
        """Join a group. Raises BusUnavailableError."""
        subscription = KafkaSubscription(self._events, options)
        await subscription.open()
        self._subscriptions.add(subscription)
        return subscription

    async def close(self) -> None:
        """Leave all groups and end the connections; a publish that is under way ends without success."""
        self._sender.close()
        for subscription in self._subscriptions:
            await subscription.close()
        self._subscriptions.clear()
        if self._thread is not None:
            self._thread.end()
            self._thread = None
