"""What Debezium writes: changes of rows, as its own envelope or as CloudEvents, and rows of an outbox table.

A change that is sent again, as Debezium does after a crash, has the id of the first: it is made of where the change
stands in the log of the database, not of when it was sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from headrace.model.envelopes.reading import EnvelopeError, fit_name, optional_text, read_json, storable, text_of
from headrace.model.event import Event, Message

#: What the operations of a change are called in types of events.
VERBS = {"c": "Created", "u": "Updated", "d": "Deleted", "r": "Read", "t": "Truncated", "m": "Emitted"}
#: The topic of a row of an outbox table begins with this; the rest is its aggregate type.
ROUTED = "outbox.event."
#: Attributes of CloudEvents of Debezium's begin with this.
_ATTRIBUTE = "iodebezium"
_IDS = UUID("7c2b6f4e-5d0a-4b57-9c1e-0e4f3a8d9b21")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
#: Where a change stands in the log of a database, by kinds of databases; the first that is there counts.
_POSITIONS = (("lsn",), ("change_lsn", "event_serial_no"), ("file", "pos", "row"), ("scn", "ssn"), ("sequence",))


def unwrap(body: Any) -> Any:
    """Return what a value with its schema is about; another value as it is.

    >>> unwrap({"schema": None, "payload": {"op": "c"}}), unwrap([1])
    ({'op': 'c'}, [1])
    """
    return body["payload"] if isinstance(body, dict) and body.keys() == {"schema", "payload"} else body


def is_housekeeping(body: Mapping[str, Any]) -> bool:
    """Whether a value says no more than that the connector lives, or where a transaction begins or ends."""
    return body.keys() == {"ts_ms"} or (body.get("status") in ("BEGIN", "END") and "event_count" in body)


def is_change(body: Mapping[str, Any]) -> bool:
    """Whether a value is a change in Debezium's own envelope."""
    return "op" in body and "source" in body


def change_of_cloudevent(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the change that a CloudEvent of Debezium's carries; None when it is no such event."""
    if f"{_ATTRIBUTE}op" not in body:
        return None
    facts = {name.removeprefix(_ATTRIBUTE): value for name, value in body.items() if name.startswith(_ATTRIBUTE)}
    data = unwrap(body.get("data"))
    op, source = facts.pop("op"), {**facts, "ts_ms": _whole(facts.pop("tsms", None)), "lsn": _whole(facts.get("lsn"))}
    states = data if isinstance(data, dict) else {}
    return {"before": states.get("before"), "after": states.get("after"), "op": op, "source": source}


def _whole(value: Any) -> Any:
    """Attributes of CloudEvents have no numbers above 32 bits, so that these are texts."""
    fits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20
    return int(value) if fits else value


def read_change(body: Mapping[str, Any], key: str) -> Event:
    """Return the event of a change: its type is `<connector>.<table>.Created` and so on, its payload the change.

    `key`: of the message, the primary key as JSON. Values that the database did not log stay as Debezium marks them,
    `__debezium_unavailable_value`. Raises EnvelopeError.
    """
    source, verb = body["source"], VERBS.get(body["op"]) if isinstance(body["op"], str) else None
    if not isinstance(source, dict):
        raise EnvelopeError("source", "must be an object", source)
    if verb is None:
        raise EnvelopeError("op", f"must be one of {', '.join(VERBS)}", body["op"])
    name, table = text_of(source, "name"), _table(source, body["op"])
    row = storable(unwrap(_key_value(key)), "message key")
    payload = {part: body.get(part) for part in ("before", "after", "op", "source", "ts_ms")}
    if "message" in body:
        payload["message"] = body["message"]
    storable(payload)
    return Event(
        f"{fit_name(name)}.{fit_name(table)}.{verb}",
        _UNFIT.sub("_", ".".join(part for part in (_schema(source), table) if part))[:128],
        text_of({"message key": _aggregate_id(row) or table}, "message key"),
        payload,
        id=_change_id(name, source, body, row),
        time=_moment(source),
    )


def _table(source: Mapping[str, Any], op: str) -> str:
    if op == "m":
        return "message"
    return text_of(source, "table" if source.get("collection") is None else "collection")


def _schema(source: Mapping[str, Any]) -> str:
    return optional_text(source, "schema") or optional_text(source, "db") or ""


def _key_value(key: str) -> Any:
    """Return what a key says: JSON, or the text itself where it is none."""
    try:
        return read_json(key.encode(errors="replace"))
    except EnvelopeError:
        return key


def _aggregate_id(row: Any) -> str:
    """Return a primary key as text: of one column its value, of several JSON."""
    values = list(row.values()) if isinstance(row, dict) else [row]
    value = values[0] if len(values) == 1 else row
    return value if isinstance(value, str) else "" if value in (None, {}) else _canonical(value)


def _change_id(name: str, source: Mapping[str, Any], body: Mapping[str, Any], row: Any) -> str:
    position = _position(source)
    place = [name, position, _schema(source), source.get("table", source.get("collection")), row, body["op"]]
    if position is None or row in (None, "", {}):
        # Nothing else tells it from others of its table.
        place += [source.get("ts_ms"), body.get("before"), body.get("after"), body.get("message")]
    return str(uuid5(_IDS, _canonical(place)))


def _position(source: Mapping[str, Any]) -> list[Any] | None:
    for names in _POSITIONS:
        if source.get(names[0]) is not None:
            return [source.get(name) for name in names]
    return None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _moment(source: Mapping[str, Any]) -> datetime | None:
    value = source.get("ts_ms")
    if value is None:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=value)
    except (TypeError, OverflowError):
        raise EnvelopeError("source.ts_ms", "must be milliseconds since 1970", value) from None


def read_routed(message: Message, body: Any) -> Event:
    """Return the event of a row of an outbox table, as Debezium's event router sends it.

    Its id is the header `id`, its aggregate id the key, its type the header `type` or `eventType`. Raises
    EnvelopeError.
    """
    headers = {name: unquoted(value) for name, value in message.headers}
    kinds = (headers.get("type"), headers.get("eventType"))
    type_ = next((kind for kind in kinds if kind), None)
    if type_ is None:
        rule = "must be given: set table.fields.additional.placement=type:header:type at the event router"
        raise EnvelopeError("header type", rule, type_)
    topic = message.topic.removeprefix(ROUTED)
    kind = headers.get("aggregatetype") or headers.get("aggregate_type") or topic
    row = storable(unwrap(_key_value(message.key)), "message key")
    facts = {"header id": headers.get("id"), "header type": type_, "aggregate type": kind}
    facts["message key"] = _aggregate_id(row)
    return Event(
        text_of(facts, "header type"),
        text_of(facts, "aggregate type"),
        text_of(facts, "message key"),
        storable(body),
        correlation_id=optional_text(headers, "correlation_id"),
        causation_id=optional_text(headers, "causation_id"),
        id=text_of(facts, "header id"),
    )


def unquoted(value: str) -> str:
    """Return a text that may have been written as JSON, with its schema or without, as header converters do.

    >>> unquoted('"e-1"'), unquoted("e-1")
    ('e-1', 'e-1')
    """
    if not value.startswith(('"', "{")):
        return value
    inner = unwrap(_key_value(value))
    return inner if isinstance(inner, str) else value
