"""Records of change events: what is for memory, in every form that Debezium has, and what is wrong is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from headrace import InvalidInputError
from headrace.apps.memory.changes import no_trigger_sql, record_of, topic_of, trigger_sql
from headrace.apps.memory.changes.consumer import type_name
from headrace.apps.memory.data.records import Record
from headrace.model.envelopes import decode
from headrace.model.envelopes.reading import fit_name
from headrace.model.event import Event, Message
from tests.unit.memory_changes import TOPIC, bare, change, cloudevent, row, with_schema

MOMENT = datetime(2026, 5, 1, 12, tzinfo=UTC)
FORMS: list[Callable[[dict[str, Any]], Message]] = [bare, with_schema, cloudevent]


def read(message: Message, *, snapshots: bool = False) -> Record | None:
    """Return the record of a message."""
    event = decode(message)
    return None if event is None else record_of(event, read_snapshots=snapshots)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", ["c", "u"])
def test_a_row_that_waits_is_a_record_in_every_form(form: Callable[[dict[str, Any]], Message], op: str) -> None:
    """With its schema, without, and as a CloudEvent."""
    record = read(form(change(row(3), op=op)))
    assert record is not None
    assert (record.user_id, record.buffer_id, record.operation) == ("u-3", UUID(int=3), op)
    assert (record.timestamp, record.buffer_size) == (MOMENT.replace(microsecond=250_000), 30)
    facts = {name: record.metadata[name] for name in ("name", "schema", "table", "lsn", "snapshot")}
    assert facts == {
        "name": "memory", "schema": "headrace_memory", "table": "buffer_zone", "lsn": 1_000, "snapshot": "false",
    }  # fmt: skip


def test_the_forms_of_a_change_have_one_id() -> None:
    """A connector whose converter is changed repeats nothing; another position, row or operation is another change."""
    same = {decode(form(change(row()))).id for form in FORMS}  # type: ignore[union-attr]
    others = [change(row(), lsn=1_001), change(row(2)), change(row(), op="u")]
    assert len(same) == 1
    assert len({decode(bare(one)).id for one in others} | same) == 4  # type: ignore[union-attr]


NOT_FOR_US = {
    "deleted": change(None, op="d") | {"before": row()},
    "truncated": change(None, op="t"),
    "a message": change(None, op="m") | {"message": {"prefix": "p", "content": ""}},
    "processing": change(row(status="processing", flush_id=str(UUID(int=9))), op="u"),
    "done": change(row(status="done", flush_id=str(UUID(int=9))), op="u"),
    "failed": change(row(status="failed"), op="u"),
    "bound": change(row(flush_id=str(UUID(int=9))), op="u"),
    "a document": change(row(blob_type="doc")),
    "bound and else wrong": change(row(flush_id="7", token_size=-1), op="u"),
}


@pytest.mark.parametrize("value", NOT_FOR_US.values(), ids=NOT_FOR_US.keys())
def test_what_brings_nothing_into_a_buffer_is_no_record(value: dict[str, Any]) -> None:
    """Rows that went, and changes that memory made itself."""
    for form in FORMS:
        assert read(form(value), snapshots=True) is None


@pytest.mark.parametrize("op", ["r", "c"])
@pytest.mark.parametrize("snapshot", ["true", "first", "last", "first_in_data_collection", "incremental", True])
def test_snapshots_are_read_only_if_wanted(snapshot: object, op: str) -> None:
    """Whatever their place in the snapshot, and whatever the connector calls the operation."""
    message = bare(change(row(), op=op, snapshot=snapshot))
    assert read(message) is None
    record = read(message, snapshots=True)
    assert record is not None and record.operation == op


def test_a_change_that_is_read_without_saying_so_is_of_a_snapshot() -> None:
    """The operation alone says it."""
    assert read(bare(change(row(), op="r", snapshot="false"))) is None
    assert read(bare(change(row(), op="c", snapshot=None))) is not None


@pytest.mark.parametrize("value", [None, b'{"schema": null, "payload": null}'], ids=["none", "payload"])
def test_tombstones_say_nothing(value: bytes | None) -> None:
    """They follow what was deleted."""
    assert decode(Message(TOPIC, '{"id": 1}', value)) is None


TIMES = {
    "2026-05-01T12:00:00Z": MOMENT, "2026-05-01T14:00:00+02:00": MOMENT, "2026-05-01 12:00:00+00": MOMENT,
    "2026-05-01T12:00:00.123456789Z": MOMENT.replace(microsecond=123_456),
    1_777_636_800_000: MOMENT, 1_777_636_800_000_001: MOMENT.replace(microsecond=1),
    1_777_636_800_000_001_999: MOMENT.replace(microsecond=1), 1_777_636_800_500: MOMENT.replace(microsecond=500_000),
}  # fmt: skip


@pytest.mark.parametrize(("value", "moment"), TIMES.items())
def test_times_are_read_in_all_encodings_of_debezium(value: object, moment: datetime) -> None:
    """ZonedTimestamp, Timestamp, MicroTimestamp, NanoTimestamp, and what PostgreSQL writes."""
    record = read(bare(change(row(updated_at=value))))
    assert record is not None and record.timestamp == moment


GONE = "__debezium_unavailable_value"
WRONG = [
    ({"user_id": None}, "after.user_id must be given"),
    ({"user_id": ""}, "after.user_id must be a text of 1 to 200"),
    ({"user_id": "x" * 201}, "after.user_id must be a text of 1 to 200"),
    ({"user_id": 7}, "after.user_id must be a text, got 7"),
    ({"user_id": GONE}, "after.user_id must be in the change; set REPLICA IDENTITY FULL"),
    ({"blob_type": None}, "after.blob_type must be given"),
    ({"status": GONE}, "after.status must be in the change"),
    ({"flush_id": GONE}, "after.flush_id must be in the change"),
    ({"id": "7"}, "after.id must be a UUID, got '?7"),
    ({"token_size": -1}, "after.token_size must be a whole number from 0"),
    ({"token_size": True}, "after.token_size must be a whole number"),
    ({"token_size": "12"}, "after.token_size must be a whole number"),
    ({"token_size": 2**31}, "after.token_size must be a whole number"),
    ({"updated_at": None}, "after.updated_at must be given"),
    ({"updated_at": "yesterday"}, "after.updated_at must be a time with its zone"),
    ({"updated_at": "2026-05-01T12:00:00"}, "after.updated_at must be a time with its zone"),
    ({"updated_at": "2026-13-01T12:00:00Z"}, "after.updated_at must be a time"),
    ({"updated_at": "0001-01-01T00:00:00+10:00"}, "after.updated_at must be a time"),
    ({"updated_at": 1_777_636_800}, "in the years 2000 to 2199, got 1777636800"),
    ({"updated_at": -1}, "after.updated_at must be a time"),
    ({"updated_at": True}, "after.updated_at must be a time"),
    ({"updated_at": 1.5}, "after.updated_at must be a time"),
]


@pytest.mark.parametrize(("changes", "text"), WRONG, ids=[text for _, text in WRONG])
def test_what_is_wrong_is_said(changes: dict[str, Any], text: str) -> None:
    """Field, rule and value: it is a dead letter, and people read why."""
    for form in FORMS:
        with pytest.raises(InvalidInputError, match=text):
            read(form(change(row(**changes))))


PAYLOADS: list[tuple[Any, str]] = [
    (None, "change must be an object"),
    ([1], "change must be an object"),
    ({"op": "x", "source": {}}, "op must be one of c, u, r, d, t, m"),
    ({"op": ["c"], "source": {}}, "op must be one of"),
    ({"op": "c"}, "source must be an object"),
    ({"op": "c", "source": {}, "after": None}, "after must be an object"),
    ({"op": "c", "source": {}, "after": "row"}, "after must be an object"),
]


@pytest.mark.parametrize(("payload", "text"), PAYLOADS, ids=[str(one) for one, _ in PAYLOADS])
def test_events_of_others_under_our_names_are_wrong(payload: Any, text: str) -> None:
    """Somebody may send an event of such a type in any envelope."""
    with pytest.raises(InvalidInputError, match=text):
        record_of(Event("memory.buffer_zone.Created", "buffer_zone", "1", payload, id="e"), read_snapshots=False)


@pytest.mark.parametrize("prefix", ["memory", "eu-1", "1st", "_x", "-", "A" * 64, "7" * 64])
def test_types_are_named_as_events_of_debezium_are(prefix: str) -> None:
    """So the handlers are found whatever the prefix."""
    assert type_name(prefix) == fit_name(prefix)


def test_statements_of_the_trigger_have_all_names_filled_in() -> None:
    """And what could not be a name is refused before it is SQL."""
    text = trigger_sql("mem", "head", "eu-1")
    assert '"mem".buffer_zone' in text and '"head".insert_events' in text and f"'{topic_of('mem', 'eu-1')}'" in text
    assert "{schema}" not in text + no_trigger_sql("mem") and "{prefix}" not in text and "{topic}" not in text
    for names in [('m"; DROP', "head", "p"), ("m", "h'", "p"), ("m", "h", "p'"), ("m", "h", "a.b"), ("", "h", "p")]:
        with pytest.raises(InvalidInputError, match="must match"):
            trigger_sql(*names)


def test_json_of_the_row_is_read_as_it_is() -> None:
    """A row has columns that are none of ours."""
    value = change(row(extra={"a": [1]}))
    assert read(Message(TOPIC, "not json", json.dumps(value).encode())) is not None
