"""Events on the bus: the forms that they are written in, and those of others that are read.

Written: Headrace's own envelope and CloudEvents. Read as well: CloudEvents in binary mode, changes of rows and rows of
an outbox table as Debezium sends them.
"""

from __future__ import annotations

from typing import Any

from headrace.model.envelopes.cloudevents import CONTENT_TYPE as CLOUDEVENT
from headrace.model.envelopes.cloudevents import PREFIX, binary_attributes, read_cloudevent, write_cloudevent
from headrace.model.envelopes.debezium import (
    change_of_cloudevent,
    is_change,
    is_housekeeping,
    read_change,
    read_routed,
    unwrap,
)  # fmt: skip
from headrace.model.envelopes.headrace import CONTENT_TYPE as HEADRACE
from headrace.model.envelopes.headrace import MARKS, read_headrace, write_headrace
from headrace.model.envelopes.reading import EnvelopeError, read_json
from headrace.model.event import Event, Message

__all__ = ["EnvelopeError", "decode", "encode"]


def encode(event: Event, form: str, source: str, topic: str) -> Message:
    """Return an event as a message, its `form` "headrace" or "cloudevents".

    `source`: for the latter, where it comes from. Raises InvalidInputError for what cannot be written.

    >>> encode(Event("A.B.C", "B", "b-1", id="e-1"), "headrace", "/headrace", "outbox.event.B").header("type")
    'A.B.C'
    """
    written = write_cloudevent(event, source) if form == "cloudevents" else write_headrace(event)
    headers = {
        "id": event.id, "type": event.type, "correlation_id": event.correlation_id,
        "causation_id": event.causation_id, "retries": str(event.retries),
        "content-type": CLOUDEVENT if form == "cloudevents" else HEADRACE,
    }  # fmt: skip
    given = tuple((name, value) for name, value in headers.items() if value is not None)
    return Message(topic, event.aggregate_id, written.encode(), given)


def decode(message: Message) -> Event | None:
    """Return the event of a message; None of a message that says nothing: a tombstone, a sign of life.

    Raises EnvelopeError, and no other error, for whatever is no event.

    >>> sent = encode(Event("A.B.C", "B", "b-1", id="e-1"), "cloudevents", "/headrace", "outbox.event.B")
    >>> decode(sent).id
    'e-1'
    """
    kind = (message.header("content-type") or "").partition(";")[0].strip().lower()
    if any(name.lower() == f"{PREFIX}specversion" for name, _ in message.headers):
        return _cloudevent(binary_attributes(message), message.key)
    if message.value is None:
        return None
    if kind.startswith("application/cloudevents") and kind != CLOUDEVENT:
        raise EnvelopeError("header content-type", f"must be {CLOUDEVENT}: one event as JSON", kind)
    body = read_json(message.value)
    if kind == HEADRACE:
        return read_headrace(body)
    if kind == CLOUDEVENT and not isinstance(body, dict):
        raise EnvelopeError("message value", "must be a JSON object", body)
    return _of_shape(message, body, cloud=kind == CLOUDEVENT)


def _of_shape(message: Message, body: Any, *, cloud: bool) -> Event | None:
    """Return the event of a value that is known by its shape alone."""
    inner = unwrap(body)
    if inner is None and body is not None:
        return None
    shape = inner if isinstance(inner, dict) else {}
    if cloud or shape.keys() >= {"specversion", "type"}:
        return _cloudevent(shape, message.key)
    if shape.keys() >= MARKS:
        return read_headrace(shape)
    if message.header("id") is not None:
        return read_routed(message, inner)
    if is_change(shape):
        return read_change(shape, message.key)
    if is_housekeeping(shape):
        return None
    rule = (
        "must be Headrace's envelope, a CloudEvent, a change of Debezium, or have a header id, as of its event router"
    )
    raise EnvelopeError("message value", rule, body)


def _cloudevent(body: dict[str, Any], key: str) -> Event:
    change = change_of_cloudevent(body)
    return read_cloudevent(body, key) if change is None else read_change(change, key)
