"""Events: what happened, in one envelope, and where it goes.

An event is written with the change that caused it, leaves through the outbox, and may arrive more than once: consumers
know it again by its id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.ids import uuid7
from headrace.model.names import check_key
from headrace.model.payload import encode_json

#: An event's payload above this many bytes of JSON is refused, unless `[events] max_bytes` says otherwise: brokers
#: refuse messages above 1 MB.
MAX_EVENT_BYTES = 900 * 1024
#: Where events of an aggregate type go, as in the outbox router of Debezium.
TOPIC = "outbox.event.{aggregate_type}"

_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}(\.[A-Za-z][A-Za-z0-9_]{0,63}){2}")
_TOPICS = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}\*?")
_AGGREGATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to an aggregate, as it is sent and received. `payload` is any JSON.

    >>> Event("Genesis.Session.Started", "GenesisSession", "s-1", {"style": "grim"}).payload
    {'style': 'grim'}
    """

    #: `Domain.Aggregate.Event`
    type: str
    #: The kind of thing it happened to; it names the topic.
    aggregate_type: str
    #: Which of them: events of one are kept in order.
    aggregate_id: str
    payload: Any = None
    #: What belongs together: the id of the command that began it all.
    correlation_id: str | None = None
    #: The id of the event, or of the job, that caused it.
    causation_id: str | None = None
    #: Known again by this, for ever; ours are UUIDs.
    id: str = field(default_factory=lambda: str(uuid7()))
    #: When it happened (aware); of ours the store's time.
    time: datetime | None = None
    #: Of the payload's form.
    schema_version: int = 1
    #: How often what led to it was tried again.
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """What a bus carries: bytes under a key, in a topic. Messages of one key stay in order."""

    topic: str
    key: str
    #: None: a tombstone, which says that there is nothing any more under this key.
    value: bytes | None
    headers: tuple[tuple[str, str], ...] = ()

    def header(self, name: str) -> str | None:
        """Return the last header of a name."""
        return dict(self.headers).get(name)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One row for the outbox: an event, or a message as it is, and the topic it goes to."""

    topic: str
    key: str
    event: Event | None = None
    #: Sent as it is where there is no event: a dead letter.
    message: Message | None = None
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row that waits in the outbox. `position` orders rows as they were inserted."""

    position: int
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class ParkedEvent:
    """A row that no bus takes, and how many of its key wait behind it."""

    position: int
    topic: str
    key: str
    event_id: str | None
    type: str | None
    error: str
    parked_at: datetime
    held: int


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """How full the outbox is."""

    waiting: int = 0
    #: Behind a parked one of their key.
    held: int = 0
    parked: int = 0
    #: Seconds that the oldest waiting row has been there.
    oldest_seconds: float = 0.0


def check_type(value: object) -> str:
    """Return `value` if it is a valid type of event, else raise InvalidInputError.

    >>> check_type("Genesis.Session.Started")
    'Genesis.Session.Started'
    """
    if not isinstance(value, str) or not _TYPE.fullmatch(value):
        rule = "must be Domain.Aggregate.Event, such as Genesis.Session.Started: three names of letters, digits and _"
        raise InvalidInputError("event type", rule, value)
    return value


def check_topics(field: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return names of topics to read; one that ends with "*" stands for all that begin so. Raises InvalidInputError.

    >>> check_topics("topics", ["shop.orders", "outbox.event.*"])
    ('shop.orders', 'outbox.event.*')
    """
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not _TOPICS.fullmatch(name):
            rule = 'must name topics of 1 to 249 letters, digits and . _ -, with one "*" at most, at the end'
            raise InvalidInputError(field, rule, name)
    return found


def check_event(event: Event, *, most: int = MAX_EVENT_BYTES) -> str:
    """Return the payload of an event as JSON text. Raises InvalidInputError naming field, rule and value.

    >>> check_event(Event("Genesis.Session.Started", "GenesisSession", "s-1", {"style": "grim"}))
    '{"style":"grim"}'
    """
    check_type(event.type)
    if not isinstance(event.aggregate_type, str) or not _AGGREGATE.fullmatch(event.aggregate_type):
        rule = "must be 1 to 128 letters, digits and . _ -: it becomes part of the topic"
        raise InvalidInputError("aggregate_type", rule, event.aggregate_type)
    check_key("aggregate_id", event.aggregate_id)
    for name, value in (("correlation_id", event.correlation_id), ("causation_id", event.causation_id)):
        if value is not None:
            check_key(name, value)
    for name, number, least in (("schema_version", event.schema_version, 1), ("retries", event.retries, 0)):
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number < 2**31:
            raise InvalidInputError(name, f"must be a whole number from {least}", number)
    return encode_json(event.payload, field="event payload", most=most)


def outgoing(event: Event, *, topic: str = TOPIC) -> Outgoing:
    """Return the row for the outbox of an event; `topic` may contain {aggregate_type}."""
    return Outgoing(topic.replace("{aggregate_type}", event.aggregate_type), event.aggregate_id, event)
