"""How an event is made of what somebody says happened: what it leaves out follows from the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict
from uuid import UUID, uuid5

from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.event import MAX_EVENT_BYTES, TOPIC, Event, Outgoing, check_event, outgoing

NO_OUTBOX = (
    "events need a store with an outbox, which commits with the change they tell of: use PostgreSQL, with Redis "
    "beside it for limits ([limits] url) where you want that"
)


class EventOptions(TypedDict, total=False):
    """Options of `emit`."""

    #: Which aggregate it happened to; events of one stay in order. Needed, unless it follows from another event.
    aggregate_id: str
    #: Default: domain and aggregate of the type: "GenesisSession" of "Genesis.Session.Started".
    aggregate_type: str
    #: What belongs together; default: that of the run or the event it follows from.
    correlation_id: str | None
    #: What caused it; default: the event it follows from, or the job.
    causation_id: str | None
    #: Of the payload's form; default 1.
    schema_version: int
    #: How often what led to it was tried again; default 0, or that of the event it follows from.
    retries: int


@dataclass(frozen=True, slots=True)
class Emission:
    """How this app's events are made; `available`: its store has an outbox."""

    topic: str = TOPIC
    max_bytes: int = MAX_EVENT_BYTES
    available: bool = True

    def make(self, type_: str, payload: Any, options: EventOptions, *, event_id: str | None = None) -> Outgoing:
        """Return the row for the outbox. Raises InvalidInputError, PayloadTooLargeError, ConfigError.

        >>> Emission().make("Genesis.Session.Started", None, {"aggregate_id": "s-1"}).topic
        'outbox.event.GenesisSession'
        """
        if not self.available:
            raise ConfigError(NO_OUTBOX)
        if not isinstance(type_, str):
            raise InvalidInputError("event type", "must be text, such as Genesis.Session.Started", type_)
        if "aggregate_id" not in options:
            raise InvalidInputError("aggregate_id", "must say to which aggregate it happened", None)
        known: dict[str, Any] = dict(options)
        aggregate_type = known.pop("aggregate_type", None) or "".join(type_.split(".")[:2])
        if event_id is not None:
            known["id"] = event_id
        event = Event(type_, aggregate_type, known.pop("aggregate_id"), payload, **known)
        check_event(event, most=self.max_bytes)
        return outgoing(event, topic=self.topic)


def check_options(options: EventOptions) -> None:
    """Raise InvalidInputError for an option that `emit` does not have."""
    unknown = sorted(set(options) - set(EventOptions.__annotations__))
    if unknown:
        rule = f"must be among {', '.join(EventOptions.__annotations__)}"
        raise InvalidInputError("options of an event", rule, unknown[0])


def stable_id(cause: UUID, name: str) -> str:
    """Return the id of an event that is the same whenever the same cause gives it again.

    >>> stable_id(UUID(int=1), "a") == stable_id(UUID(int=1), "a")
    True
    """
    return str(uuid5(cause, name))
