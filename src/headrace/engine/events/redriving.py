"""Dead letters of events: looked at, and put back to the topic that they came from.

Guaranteed: a dead letter is passed only after its message was stored in the outbox; who dies between the two leaves it
to be read again, and then it is stored under the same id. A message that comes back as a dead letter while its redrive
still goes on is not put back again. Not guaranteed: that two who read a topic at the same time both see all of it: they
are members of one group.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from uuid import UUID, uuid5

from headrace.engine.events.agent_runner import REDRIVEN_FOR, REDRIVES
from headrace.model.envelopes import EnvelopeError, decode
from headrace.model.envelopes.dead_letters import PREFIX, original_message
from headrace.model.errors import InvalidInputError
from headrace.model.event import Event, Message, Outgoing, check_topics
from headrace.model.message_log import Partition
from headrace.ports.bus import Bus, Delivery, Subscription, SubscriptionOptions
from headrace.ports.outbox import Outbox

#: Whoever looks at dead letters is a member of it; its offsets say what was put back.
GROUP = "headrace.redrive"
#: Dead letters of one transaction, and the seconds of one look.
BATCH, LOOK_SECONDS = 200, 0.25

_PUT_BACK = UUID("1f0b6c54-6a53-4a7e-9d0f-3f4f8a6f3c55")


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, for reading."""

    partition: int
    offset: int
    key: str
    #: None: its message is no event.
    event_id: str | None
    type: str | None
    agent: str
    kind: str
    error: str
    attempts: int
    #: How often it was put back before.
    redrives: int


@dataclass(slots=True)
class Found:
    """What a look or a redrive came to."""

    letters: list[Letter] = field(default_factory=list)
    #: Messages of the topic that no agent put there: passed over.
    foreign: int = 0
    #: Came back as dead letters while the others were put back: left where they are.
    returned: int = 0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for the first dead letter, and for the next: joining a group takes its time."""

    first: float = 15.0
    next: float = 3.0


@dataclass(slots=True)
class Redriving:
    """Reads the dead letters of topics. All methods raise BusUnavailableError, StoreUnavailableError."""

    bus: Bus
    outbox: Outbox
    #: What the name of a topic has more where its dead letters are.
    suffix: str
    patience: Patience
    #: How many messages of a topic the group has still before it; None where only time tells.
    backlog: Callable[[str], Awaitable[int | None]]

    async def look(self, topic: str, *, limit: int) -> Found:
        """Return dead letters of a topic that were not put back yet, at most `limit`; nothing changes."""
        found = Found()
        async with self._joined(topic) as subscription:
            async for deliveries in self._batches(subscription, topic, limit):
                for delivery in deliveries:
                    _note(found, delivery, topic)
        return found

    async def redrive(self, topic: str, *, limit: int) -> Found:
        """Put dead letters of a topic back, at most `limit`, those of a key in their order, and return them."""
        found = Found()
        sent: dict[bytes, int] = {}
        async with self._joined(topic) as subscription:
            async for deliveries in self._batches(subscription, topic, limit):
                fresh = _until_returned(deliveries, sent)
                await self._put_back(subscription, fresh, topic)
                for delivery in fresh:
                    _note(found, delivery, topic)
                found.returned += len(deliveries) - len(fresh)
                if found.returned:
                    return found
        return found

    async def _put_back(self, subscription: Subscription, deliveries: Sequence[Delivery], topic: str) -> None:
        rows = [row for delivery in deliveries if (row := put_back(delivery, topic)) is not None]
        if rows:
            await self.outbox.insert_events(rows)
        await subscription.commit({delivery.place: delivery.offset + 1 for delivery in deliveries})

    @asynccontextmanager
    async def _joined(self, topic: str) -> AsyncIterator[Subscription]:
        if topic.endswith((self.suffix, "*")):
            rule = f"must be the topic that the messages came from, without {self.suffix!r} and *"
            raise InvalidInputError("topic", rule, topic)
        check_topics("topic", [topic, topic + self.suffix])
        options = SubscriptionOptions(GROUP, (topic + self.suffix,), _nothing_more, lambda _: None)
        subscription = await self.bus.subscribe(options)
        try:
            yield subscription
        finally:
            await subscription.close()

    async def _batches(self, subscription: Subscription, topic: str, limit: int) -> AsyncIterator[list[Delivery]]:
        """Yield what there is, until as much has come as there was, or nothing has come for a while."""
        loop = asyncio.get_running_loop()
        until, count, expected = loop.time() + self.patience.first, 0, None
        while count < (limit if expected is None else min(limit, expected)):
            deliveries = await subscription.receive(limit=min(limit - count, BATCH), timeout=LOOK_SECONDS)
            if expected is None:
                expected = await self.backlog(topic + self.suffix)
            if deliveries:
                count += len(deliveries)
                yield deliveries
                until = loop.time() + self.patience.next
            elif loop.time() > until:
                return


def put_back(delivery: Delivery, topic: str) -> Outgoing | None:
    """Return the row for the outbox that puts a dead letter back to its topic; None of what is none of that topic.

    >>> letter = Message("t.dlt", "k", b"1", (("redrives", "1"), ("dlt-topic", "t"), ("dlt-agent", "a")))
    >>> put_back(Delivery(letter, 0, 7), "t").message.headers
    (('redrives', '2'), ('redriven-for', 'a'))
    """
    original = original_message(delivery.message)
    if original is None or original.topic != topic:
        return None
    agent = delivery.message.header(f"{PREFIX}agent") or ""
    kept = tuple(pair for pair in original.headers if pair[0] not in (REDRIVES, REDRIVEN_FOR))
    times = redrives_of(delivery.message) + 1
    message = replace(original, headers=(*kept, (REDRIVES, str(times)), (REDRIVEN_FOR, agent)))
    facts = [delivery.message.topic, str(delivery.partition), str(delivery.offset), agent, str(times)]
    facts += [delivery.message.header(PREFIX + name) or "" for name in ("partition", "offset")]
    return Outgoing(topic, original.key, message=message, id=uuid5(_PUT_BACK, "/".join(facts)))


def redrives_of(message: Message) -> int:
    """Return how often a message was put back.

    >>> redrives_of(Message("t", "k", b"", (("redrives", "3"),))), redrives_of(Message("t", "k", b""))
    (3, 0)
    """
    text = message.header(REDRIVES) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _until_returned(deliveries: Sequence[Delivery], sent: dict[bytes, int]) -> list[Delivery]:
    """Return those before the first that was put back by this very redrive, and note them in `sent`."""
    fresh = []
    for delivery in deliveries:
        message, times = delivery.message, redrives_of(delivery.message)
        agent = message.header(f"{PREFIX}agent") or ""
        name = blake2b(repr((message.key, message.value, agent)).encode(), digest_size=16).digest()
        if times and sent.get(name, times + 1) <= times:
            break
        sent[name] = times + 1
        fresh.append(delivery)
    return fresh


def _note(found: Found, delivery: Delivery, topic: str) -> None:
    original = original_message(delivery.message)
    if original is None or original.topic != topic:
        found.foreign += 1
    else:
        found.letters.append(_letter(delivery, original))


def _letter(delivery: Delivery, original: Message) -> Letter:
    event = _event_of(original)
    facts = {name: delivery.message.header(PREFIX + name) or "" for name in ("agent", "error-kind", "error")}
    attempts = delivery.message.header(f"{PREFIX}attempts") or ""
    return Letter(
        delivery.partition, delivery.offset, original.key,
        None if event is None else event.id, None if event is None else event.type,
        facts["agent"], facts["error-kind"], facts["error"],
        int(attempts) if attempts.isascii() and attempts.isdigit() and len(attempts) < 10 else 0,
        redrives_of(delivery.message),
    )  # fmt: skip


def _event_of(message: Message) -> Event | None:
    try:
        return decode(message)
    except EnvelopeError:
        return None


async def _nothing_more(_: Sequence[Partition]) -> dict[Partition, int]:
    """Commit nothing when partitions go to another member: what was put back is committed already."""
    return {}
