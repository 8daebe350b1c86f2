"""Headrace's own envelope: one JSON object with the facts of an event and its payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.envelopes.reading import (
    MOST_BYTES,
    EnvelopeError,
    moment_of,
    moment_text,
    optional_text,
    storable,
    text_of,
    whole_of,
)  # fmt: skip
from headrace.model.event import Event
from headrace.model.payload import encode_json

CONTENT_TYPE = "application/vnd.headrace.event+json"
#: An object with all of these is such an envelope, also where nothing else says so.
MARKS = frozenset({"id", "type", "aggregate_type", "aggregate_id"})


def write_headrace(event: Event) -> str:
    """Return the envelope of an event.

    >>> write_headrace(Event("A.B.C", "B", "b-1", [1], id="e-1"))[:44]
    '{"id":"e-1","type":"A.B.C","aggregate_type":'
    """
    facts = {
        "id": event.id, "type": event.type, "aggregate_type": event.aggregate_type, "aggregate_id": event.aggregate_id,
        "correlation_id": event.correlation_id, "causation_id": event.causation_id, "time": moment_text(event.time),
        "schema_version": event.schema_version, "retries": event.retries,
    }  # fmt: skip
    return with_payload(facts, "payload", event.payload)


def with_payload(facts: Mapping[str, Any], name: str, payload: Any) -> str:
    """Return a JSON object of facts and a payload, which may be as deep as it may be alone.

    >>> with_payload({"id": "e-1"}, "data", [1])
    '{"id":"e-1","data":[1]}'
    """
    head = encode_json(facts, field="event")
    return f'{head[:-1]},"{name}":{encode_json(payload, field="event payload", most=MOST_BYTES)}}}'


def read_headrace(body: Any) -> Event:
    """Return the event of an envelope; members that it does not know are left alone. Raises EnvelopeError."""
    if not isinstance(body, dict):
        raise EnvelopeError("message value", "must be a JSON object", body)
    return Event(
        text_of(body, "type"),
        text_of(body, "aggregate_type"),
        text_of(body, "aggregate_id"),
        storable(body.get("payload")),
        correlation_id=optional_text(body, "correlation_id"),
        causation_id=optional_text(body, "causation_id"),
        id=text_of(body, "id"),
        time=moment_of(body, "time"),
        schema_version=whole_of(body, "schema_version", least=1),
        retries=whole_of(body, "retries", least=0),
    )
