"""CloudEvents 1.0: written as structured JSON, read in structured and binary mode.

Ids of CloudEvents are unique per source only, so that those of others that are no UUIDs are taken with their source.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from headrace.model.envelopes.headrace import with_payload
from headrace.model.envelopes.reading import (
    MOST_TEXT,
    EnvelopeError,
    fit_name,
    moment_of,
    moment_text,
    optional_text,
    read_json,
    storable,
    text_of,
    whole_of,
)  # fmt: skip
from headrace.model.event import Event, Message

CONTENT_TYPE = "application/cloudevents+json"
#: What stands before the names of attributes in headers, in binary mode.
PREFIX = "ce_"
_VERSION = "1.0"


def write_cloudevent(event: Event, source: str) -> str:
    """Return an event as structured JSON; what CloudEvents do not know are extension attributes.

    >>> write_cloudevent(Event("A.B.C", "B", "b-1", id="e-1"), "/headrace")[:58]
    '{"specversion":"1.0","id":"e-1","source":"/headrace","type'
    """
    attributes = {
        "specversion": _VERSION, "id": event.id, "source": source, "type": event.type, "subject": event.aggregate_id,
        "time": moment_text(event.time), "datacontenttype": "application/json", "aggregatetype": event.aggregate_type,
        "correlationid": event.correlation_id, "causationid": event.causation_id,
        "schemaversion": event.schema_version, "retries": event.retries,
    }  # fmt: skip
    return with_payload({name: value for name, value in attributes.items() if value is not None}, "data", event.payload)


def binary_attributes(message: Message) -> dict[str, Any]:
    """Return the attributes that the headers of a message carry in binary mode, and its data.

    >>> binary_attributes(Message("t", "k", b"[1]", (("ce_id", "e-1"),)))
    {'id': 'e-1', 'data': [1]}
    """
    found: dict[str, Any] = {
        name.lower().removeprefix(PREFIX): value
        for name, value in message.headers
        if name.lower().startswith(PREFIX)
    }  # fmt: skip
    found["data"] = _data(message.value or b"", message.header("content-type") or "application/json")
    return found


def _data(value: bytes, content_type: str) -> Any:
    if not value:
        return None
    if _is_json(content_type):
        return read_json(value)
    if content_type.startswith("text/"):
        return value.decode(errors="replace")
    return {"data_base64": base64.b64encode(value).decode(), "datacontenttype": content_type}


def _is_json(content_type: object) -> bool:
    kind = str(content_type or "application/json").partition(";")[0].strip().lower()
    return kind.endswith(("/json", "+json"))


def read_cloudevent(body: Mapping[str, Any], key: str) -> Event:
    """Return the event of attributes and data; `key`: of the message. Raises EnvelopeError."""
    version = body.get("specversion")
    if version != _VERSION:
        raise EnvelopeError("specversion", f'must be "{_VERSION}"', version)
    type_, source, id_ = (text_of(body, name) for name in ("type", "source", "id"))
    kind = optional_text(body, "aggregatetype")
    if kind is None:
        id_ = _foreign_id(source, id_)
    return Event(
        type_,
        kind or fit_name(type_.split(".")[-2:][0]),
        optional_text(body, "subject") or text_of({"message key": key or id_}, "message key"),
        storable(_payload(body)),
        correlation_id=optional_text(body, "correlationid"),
        causation_id=optional_text(body, "causationid"),
        id=id_,
        time=moment_of(body, "time"),
        schema_version=whole_of(body, "schemaversion", least=1),
        retries=whole_of(body, "retries", least=0),
    )


def _foreign_id(source: str, id_: str) -> str:
    try:
        UUID(id_)
    except ValueError:
        full = f"{source}#{id_}"
        return full if len(full) <= MOST_TEXT else str(uuid5(NAMESPACE_URL, full))
    return id_


def _payload(body: Mapping[str, Any]) -> Any:
    encoded = body.get("data_base64")
    if encoded is None:
        return body.get("data")
    if body.get("data") is not None:
        raise EnvelopeError("data_base64", "must not be given beside data", encoded)
    if not _is_json(body.get("datacontenttype")):
        return {"data_base64": encoded, "datacontenttype": body["datacontenttype"]}
    try:
        return read_json(base64.b64decode(encoded, validate=True), "data_base64")
    except (TypeError, ValueError, binascii.Error):
        raise EnvelopeError("data_base64", "must be base64", encoded) from None
