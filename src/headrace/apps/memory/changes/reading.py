"""Records of change events: what of a change in Debezium's envelope is for memory, checked.

Pure: no clock, no store. What is not for memory is None; what should be, and is wrong, is an error that names field,
rule and value, and so becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace import InvalidInputError
from headrace.apps.memory.changes.moments import moment_of
from headrace.apps.memory.data.blobs import PROCESSED
from headrace.apps.memory.data.records import Record
from headrace.events import Event

TABLE = "buffer_zone"
CREATED, UPDATED, READ = "c", "u", "r"
#: Deleted, truncated, and what a program wrote into the log: they bring nothing into a buffer.
PASSED = ("d", "t", "m")
#: Debezium's mark for a value that the database did not log: a long one that a change left as it was.
UNAVAILABLE = "__debezium_unavailable_value"
MOST_USER_ID = 200
MOST_TOKENS = 2**31 - 1


def record_of(event: Event, *, read_snapshots: bool) -> Record | None:
    """Return what a change says of a row that waits in a buffer; None: it is not for memory.

    Not for memory: rows that went, rows of snapshots unless `read_snapshots`, blobs of other types than chat and
    summary, and changes that memory made itself: of rows that wait no more, or are bound to a flush. Raises
    InvalidInputError naming field, rule and value.

    >>> row = {"id": "0197a0e0-0000-7000-8000-000000000000", "user_id": "u-1", "blob_type": "chat", "token_size": 7,
    ...        "status": "idle", "flush_id": None, "updated_at": "2026-05-01T12:00:00Z"}
    >>> change = {"before": None, "after": row, "op": "c", "source": {"lsn": 7}}
    >>> record = record_of(Event("memory.buffer_zone.Created", "x.buffer_zone", "1", change), read_snapshots=False)
    >>> record.user_id, record.buffer_size
    ('u-1', 7)
    """
    change = _object("change", event.payload)
    operation = _operation(change)
    source = _object("source", change.get("source"))
    if operation in PASSED or (_is_snapshot(operation, source) and not read_snapshots):
        return None
    row = _object("after", change.get("after"))
    if _is_own(row) or _text(row, "blob_type") not in PROCESSED:
        return None
    return Record(
        user_id=_user_id(row),
        buffer_id=_uuid(row, "id"),
        operation=operation,
        timestamp=_moment(row, "updated_at"),
        buffer_size=_tokens(row),
        metadata={"event_id": event.id, **{name: source[name] for name in _FACTS if source.get(name) is not None}},
    )


_FACTS = ("connector", "name", "db", "schema", "table", "lsn", "sequence", "txId", "ts_ms", "snapshot")


def _operation(change: Mapping[str, Any]) -> str:
    operation = change.get("op")
    if operation not in (CREATED, UPDATED, READ, *PASSED):
        raise InvalidInputError("op", "must be one of c, u, r, d, t, m", operation)
    return str(operation)


def _is_snapshot(operation: str, source: Mapping[str, Any]) -> bool:
    """Whether a row was only read; older connectors call those of a snapshot created."""
    return operation == READ or source.get("snapshot") not in (None, False, "false")


def _is_own(row: Mapping[str, Any]) -> bool:
    """Whether the row waits no more: then memory itself has changed it."""
    return _text(row, "status") != "idle" or _value(row, "flush_id", optional=True) is not None


def _object(field: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(field, "must be an object, as in Debezium's envelope", value)
    return value


def _value(row: Mapping[str, Any], name: str, *, optional: bool = False) -> Any:
    value = row.get(name)
    if value == UNAVAILABLE:
        rule = f"must be in the change; set REPLICA IDENTITY FULL on {TABLE}, or leave the column as it is"
        raise InvalidInputError(f"after.{name}", rule, value)
    if value is None and not optional:
        raise InvalidInputError(f"after.{name}", "must be given", value)
    return value


def _text(row: Mapping[str, Any], name: str) -> str:
    value = _value(row, name)
    if not isinstance(value, str):
        raise InvalidInputError(f"after.{name}", "must be a text", value)
    return value


def _user_id(row: Mapping[str, Any]) -> str:
    value = _text(row, "user_id")
    if not 1 <= len(value) <= MOST_USER_ID:
        raise InvalidInputError("after.user_id", f"must be a text of 1 to {MOST_USER_ID} characters", value)
    return value


def _uuid(row: Mapping[str, Any], name: str) -> UUID:
    value = _text(row, name)
    try:
        return UUID(value)
    except ValueError:
        raise InvalidInputError(f"after.{name}", "must be a UUID", value) from None


def _tokens(row: Mapping[str, Any]) -> int:
    value = _value(row, "token_size")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_TOKENS:
        raise InvalidInputError("after.token_size", f"must be a whole number from 0 to {MOST_TOKENS}", value)
    return value


def _moment(row: Mapping[str, Any], name: str) -> datetime:
    return moment_of(f"after.{name}", _value(row, name))
