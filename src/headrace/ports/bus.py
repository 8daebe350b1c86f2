"""The bus port: carries messages from the outbox to whoever subscribes, at least once, in order per key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.model.event import Message
from headrace.model.message_log import Partition

#: The answer for a message that was kept back because one of its key before it, in the same call, was refused.
BEHIND = "behind a refused one"
#: How the answer for a message begins that its topic cannot take for now; why may follow. Trying again helps.
LATER = "not now, try again"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as it was received."""

    message: Message
    partition: int
    offset: int

    @property
    def place(self) -> Partition:
        """Where it lies."""
        return self.message.topic, self.partition


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """What a member of a group reads. `on_revoked` is awaited before partitions go to another member.

    It ends what runs of them and returns the offsets to commit for them, the next to be read by partition; it has
    `revoke_seconds` for that. `on_lost`: they are gone already, nothing of them may be committed.
    """

    group: str
    topics: tuple[str, ...]
    on_revoked: Callable[[Sequence[Partition]], Awaitable[dict[Partition, int]]]
    on_lost: Callable[[Sequence[Partition]], None]
    revoke_seconds: float = 10.0


class Subscription(Protocol):
    """One member of a group. A new group begins at the first message that is kept."""

    async def receive(self, *, limit: int, timeout: float) -> list[Delivery]:
        """Return what has come, at most `limit`, or nothing after `timeout` seconds.

        It has to be called again and again, also while nothing more is wanted (`pause`): that keeps the membership.
        Raises BusUnavailableError.
        """
        ...

    async def commit(self, offsets: dict[Partition, int]) -> None:
        """Note the next offset to be read of partitions; of those that are not its own any more nothing is noted."""
        ...

    def pause(self, places: Sequence[Partition]) -> None:
        """Receive nothing more of partitions."""
        ...

    def resume(self, places: Sequence[Partition]) -> None:
        """Receive from paused partitions again, where it was left."""
        ...

    async def close(self) -> None:
        """Leave the group at once; `on_revoked` is awaited first."""
        ...


class Bus(Protocol):
    """Where events go and come from."""

    async def publish(self, messages: Sequence[Message]) -> list[str | None]:
        """Send messages and wait until they are durable; return for each why it will never be taken, or None.

        Messages of one key arrive in the order given. What is sent again arrives again. A bus that can keeps back what
        follows a refused message of the same topic and key, and answers BEHIND. What a topic cannot take for now is
        answered LATER, or `f"{LATER}: {why}"`, and so is what follows of its key, or BEHIND: it did not arrive, or
        nobody knows whether. Raises BusUnavailableError where nothing can be sent at all: none, some or all may have
        arrived.
        """
        ...

    async def subscribe(self, options: SubscriptionOptions) -> Subscription:
        """Join a group. Raises BusUnavailableError."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...
