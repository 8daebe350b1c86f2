"""Events and messages as rows of the outbox, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.event import Event, Message, OutboxRow, Outgoing
from headrace.model.payload import encode_json
from headrace.stores.postgres.queries import Runner

#: What one statement carries at most: so many rows, and about so many bytes of payloads and messages.
ROWS_PER_STATEMENT, BYTES_PER_STATEMENT = 5_000, 32 * 1024 * 1024
#: Payloads were held against the settings when they were emitted; here they are only written.
_ANY_SIZE = 2**30
_COLUMNS = (
    "ids", "topics", "keys", "raws", "types", "aggregate_types", "aggregate_ids", "correlation_ids", "causation_ids",
    "times", "schema_versions", "retries", "payloads", "messages", "headers",
)  # fmt: skip


async def insert_with(runner: Runner, events: Sequence[Outgoing]) -> None:
    """Put rows into the outbox inside the runner's transaction; an id that is known changes nothing."""
    for values in slices(events):
        await runner.fetch("insert_events", **values)


def slices(events: Sequence[Outgoing]) -> Iterator[dict[str, list[Any]]]:
    """Yield the parameters of `insert_events`, as many rows at once as one statement carries, each id once."""
    once: dict[UUID, Outgoing] = {}
    for event in events:
        once.setdefault(_id_of(event), event)
    rows: list[tuple[Any, ...]] = []
    size = 0
    for event_id, event in once.items():
        row = (event_id, storable(event.topic), storable(event.key), *_parts(event))
        length = len(row[-3] or "") + len(row[-2] or b"")
        if rows and (len(rows) == ROWS_PER_STATEMENT or size + length > BYTES_PER_STATEMENT):
            yield _by_column(rows)
            rows, size = [], 0
        rows.append(row)
        size += length
    if rows:
        yield _by_column(rows)


def outbox_row(row: Any) -> OutboxRow:
    """Return a row of the outbox: its event, or the message as it was given."""
    topic, key, event_id = row["topic"], row["key"], row["event_id"]
    if not row["raw"]:
        return OutboxRow(row["position"], Outgoing(topic, key, event_of(event_id, row), id=event_id))
    headers = tuple((name, value) for name, value in json.loads(row["headers"]))
    return OutboxRow(
        row["position"], Outgoing(topic, key, None, Message(topic, key, row["message"], headers), event_id)
    )


def event_of(event_id: UUID, row: Any) -> Event:
    """Return the event of a row of the log."""
    return Event(
        row["type"], row["aggregate_type"], row["aggregate_id"], json.loads(row["payload"]), row["correlation_id"],
        row["causation_id"], str(event_id), row["occurred_at"], row["schema_version"], row["retries"],
    )  # fmt: skip


def storable(text: str) -> str:
    """Return a text of somebody else's as the database can hold it: without NUL characters and half characters."""
    return (
        text.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if "\0" in text or not text.isascii() else text
    )


def _id_of(outgoing: Outgoing) -> UUID:
    if outgoing.event is None:
        return outgoing.id
    try:
        return UUID(outgoing.event.id)
    except ValueError:
        raise InvalidInputError("event id", "must be a UUID; leave it out to get one", outgoing.event.id) from None


def _parts(outgoing: Outgoing) -> tuple[Any, ...]:
    """Return the columns behind id, topic and key."""
    event, message = outgoing.event, outgoing.message
    if event is not None:
        payload = encode_json(event.payload, field="event payload", most=_ANY_SIZE)
        return (
            False, event.type, event.aggregate_type, event.aggregate_id, event.correlation_id, event.causation_id,
            event.time, event.schema_version, event.retries, payload, None, None,
        )  # fmt: skip
    if message is None:
        raise InvalidInputError("events", "must each have an event or a message", outgoing.topic)
    return (True, *[None] * 9, message.value, json.dumps(message.headers))


def _by_column(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(_COLUMNS, zip(*rows, strict=True), strict=True)}
