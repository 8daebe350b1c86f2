"""The bus of those who have no broker: messages lie in the store, members of a group divide its partitions.

Guaranteed: what was published is durable and is read in order per key, at least once; a partition has one reader in a
group, and what a member notes of one that it lost is refused. A member that is silent for the time of its lease loses
its partitions. Not guaranteed: that a message is read once. Members whose hints are lost read once per poll interval.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from headrace.buses.stored.subscription import StoreSubscription, as_bus_errors
from headrace.model.event import Message
from headrace.ports.bus import BEHIND, Subscription, SubscriptionOptions
from headrace.ports.message_log import MessageLog
from headrace.ports.notifier import Notifier

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_RULE = "topic must be 1 to 249 letters, digits and . _ -"


class StoreBus:
    """`ports.bus.Bus` over a log of messages, by the names of topics that brokers take as well."""

    def __init__(
        self, log: MessageLog, notifier: Notifier, *, partitions: int, lease: timedelta, poll: timedelta
    ) -> None:
        """New topics get `partitions`; members that are silent for `lease` lose theirs; without hints they `poll`."""
        self._log, self._notifier = log, notifier
        self._partitions, self._lease, self._poll = partitions, lease, poll
        self._subscriptions: list[StoreSubscription] = []

    async def publish(self, messages: Sequence[Message]) -> list[str | None]:
        """Store messages in one transaction; only names of topics are refused."""
        answers: list[str | None] = []
        stopped: set[tuple[str, str]] = set()
        for message in messages:
            lane = message.topic, message.key
            fits = _TOPIC.fullmatch(message.topic)
            answers.append(None if fits else BEHIND if lane in stopped else f"{_RULE}, got {message.topic[:80]!r}")
            if not fits:
                stopped.add(lane)
        taken = [message for message, answer in zip(messages, answers, strict=True) if answer is None]
        if taken:
            with as_bus_errors():
                await self._log.append_messages(taken, partitions=self._partitions)
        return answers

    async def subscribe(self, options: SubscriptionOptions) -> Subscription:
        """Join a group."""
        subscription = StoreSubscription(self._log, options, lease=self._lease, poll=self._poll)
        with as_bus_errors():
            await subscription.open(self._notifier)
        self._subscriptions.append(subscription)
        return subscription

    async def close(self) -> None:
        """Hear no more hints; who did not leave its group is thrown out at the end of its lease."""
        for subscription in self._subscriptions:
            subscription.abandon()
        self._subscriptions.clear()
