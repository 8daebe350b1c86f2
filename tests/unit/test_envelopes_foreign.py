"""Events of others: CloudEvents, changes of Debezium and rows of outbox tables, each by an example written by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from headrace.model.envelopes import decode
from headrace.model.envelopes.dead_letters import dead_letter, original_message, read_dead_letter
from headrace.model.event import Event, Message

SOURCE = {
    "version": "3.1", "connector": "postgresql", "name": "shop", "ts_ms": 1_777_600_000_000, "snapshot": "false",
    "db": "sales", "sequence": '["90","100"]', "schema": "public", "table": "order-lines", "txId": 7, "lsn": 100,
}  # fmt: skip
KEY = '{"id":7}'


def change(op: str = "u", **facts: Any) -> dict[str, Any]:
    """Return a change of a row, as Debezium writes it without its schema."""
    source = SOURCE | facts.pop("source", {})
    row = {"id": 7, "text": "__debezium_unavailable_value"}
    return {"before": None, "after": row, "source": source, "op": op, "ts_ms": 5, "transaction": None} | facts


def read(body: Any, key: str = KEY, topic: str = "shop.public.order-lines", **headers: str) -> Event:
    """Return the event of a message that has one."""
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    event = decode(Message(topic, key, value, tuple(headers.items())))
    assert event is not None
    return event


@pytest.mark.parametrize(
    ("op", "verb"), [("c", "Created"), ("u", "Updated"), ("d", "Deleted"), ("r", "Read"), ("t", "Truncated")]
)
def test_a_change_of_a_row_is_an_event(op: str, verb: str) -> None:
    """It is named after connector, table and operation; values that were not logged stay marked as they are."""
    event = read(change(op))
    assert (event.type, event.aggregate_type) == (f"shop.order_lines.{verb}", "public.order-lines")
    assert event.aggregate_id == "7"
    assert event.payload == {name: value for name, value in change(op).items() if name != "transaction"}
    assert event.time == datetime(2026, 5, 1, 1, 46, 40, tzinfo=UTC)
    assert UUID(event.id).version == 5


def test_a_change_with_its_schema_is_the_same_event() -> None:
    """What converters add around key and value makes no difference."""
    wrapped = {"schema": {"type": "struct"}, "payload": change()}
    key = json.dumps({"schema": {"type": "struct"}, "payload": {"id": 7}})
    assert read(wrapped, key) == read(change())


def test_a_change_that_is_sent_again_has_the_same_id() -> None:
    """The time of sending and what is known of older transactions may differ after a crash of the connector."""
    again = change(ts_ms=99, source={"sequence": '[null,"100"]'})
    assert read(again).id == read(change()).id


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (change(source={"lsn": 101}), KEY),
        (change(source={"name": "shop2"}), KEY),
        (change(source={"table": "orders"}), KEY),
        (change(source={"table": "order_lines"}), KEY),
        (change(source={"schema": "archive"}), KEY),
        (change("d"), KEY),
        (change(), '{"id":8}'),
        (change(), '{"id":"7"}'),
    ],
)
def test_another_change_has_another_id(other: dict[str, Any], key: str) -> None:
    """Place in the log, connector, table, row and operation tell changes apart."""
    assert read(other, key).id != read(change()).id


def test_changes_without_a_place_in_the_log_are_told_apart_by_what_they_say() -> None:
    """Incremental snapshots have no LSN."""
    unplaced = {"lsn": None, "sequence": None, "snapshot": "incremental"}
    first, again = read(change("r", source=unplaced)), read(change("r", source=unplaced, ts_ms=6))
    other = read(change("r", source=unplaced, after={"id": 7, "text": "new"}))
    assert first.id == again.id != other.id
    assert first.payload["source"]["lsn"] is None


def test_rows_of_a_table_without_a_primary_key_are_told_apart_by_what_they_say() -> None:
    """Their messages have no key; the events belong to the table."""
    first, other = read(change(), key=""), read(change(after={"id": 8}), key="")
    assert (first.aggregate_id, first.aggregate_type) == ("order-lines", "public.order-lines")
    assert first.id != other.id


@pytest.mark.parametrize(
    ("key", "aggregate_id"),
    [
        ('{"b":2,"a":"x"}', '{"a":"x","b":2}'),
        ('{"name":"Zoë"}', "Zoë"),
        ("7", "7"),
        ('"seven"', "seven"),
        ("Struct{id=7}", "Struct{id=7}"),
        ('{"flag":false}', "false"),
        ('{"n":0}', "0"),
    ],
)
def test_the_primary_key_is_the_aggregate_id(key: str, aggregate_id: str) -> None:
    """One column is its value, several are JSON, and what is no JSON is left as it is."""
    assert read(change(), key).aggregate_id == aggregate_id


@pytest.mark.parametrize(
    "source",
    [
        {"lsn": None, "file": "bin.1", "pos": 4, "row": 0},
        {"lsn": None, "change_lsn": "00:1", "event_serial_no": 1},
        {"lsn": None, "scn": "7"},
        {"lsn": None},
    ],
)
def test_changes_of_other_databases_are_told_apart_by_their_logs(source: dict[str, Any]) -> None:
    """Every database has its own way to say where a change stands."""
    place = next(name for name in ("file", "change_lsn", "scn", "sequence") if source.get(name, SOURCE.get(name)))
    assert read(change(source=source)).id != read(change(source=source | {place: "later"})).id


def test_a_collection_of_documents_is_a_table() -> None:
    """Changes of MongoDB name a collection, and neither schema nor table."""
    source = {"schema": None, "table": None, "collection": "orders"}
    event = read(change(source=source))
    assert (event.type, event.aggregate_type) == ("shop.orders.Updated", "sales.orders")


def test_a_message_in_the_log_of_the_database_is_an_event() -> None:
    """`pg_logical_emit_message` is no change of a table; what it says is kept."""
    body = change("m", message={"prefix": "audit", "content": "aGk="}, source={"table": "", "schema": ""}, after=None)
    event = read(body, '{"prefix":"audit"}')
    assert (event.type, event.aggregate_type, event.aggregate_id) == ("shop.message.Emitted", "sales.message", "audit")
    assert event.payload["message"] == {"prefix": "audit", "content": "aGk="}


@pytest.mark.parametrize(
    "value",
    [
        None,
        b'{"schema":null,"payload":null}',
        b'{"ts_ms":1}',
        b'{"status":"BEGIN","id":"7","event_count":null,"data_collections":null,"ts_ms":1}',
        b'{"status":"END","id":"7","event_count":2,"data_collections":[],"ts_ms":1}',
    ],
)
def test_what_says_nothing_is_no_event(value: bytes | None) -> None:
    """Tombstones, signs of life and borders of transactions."""
    assert decode(Message("shop.public.orders", KEY, value)) is None


def test_a_change_as_a_cloudevent_is_the_same_event() -> None:
    """Debezium can write CloudEvents; a change is the same in both forms."""
    body = {
        "id": "name:shop;lsn:100;txId:7", "source": "/debezium/postgresql/shop", "specversion": "1.0",
        "type": "io.debezium.connector.postgresql.DataChangeEvent", "time": "2026-05-01T01:46:40.000Z",
        "datacontenttype": "application/json", "iodebeziumop": "u", "iodebeziumname": "shop",
        "iodebeziumschema": "public", "iodebeziumtable": "order-lines", "iodebeziumlsn": "100",
        "iodebeziumtsms": "1777600000000", "iodebeziumdb": "sales",
        "data": {"schema": {}, "payload": {"before": None, "after": {"id": 7}}},
    }  # fmt: skip
    event, plain = read(body), read(change(after={"id": 7}))
    assert (event.id, event.type, event.time) == (plain.id, plain.type, plain.time)
    assert event.payload["after"] == {"id": 7}


CLOUD = {"specversion": "1.0", "id": "7", "source": "/orders/eu", "type": "com.shop.order.placed"}


def test_a_cloudevent_of_others_is_an_event() -> None:
    """What Headrace asks for beyond the specification is made of what there is."""
    event = read(CLOUD | {"subject": "o-1", "time": "2026-05-01T10:00:00.123456789+02:00", "data": [1]})
    assert (event.type, event.aggregate_type, event.aggregate_id) == ("com.shop.order.placed", "order", "o-1")
    assert (event.id, event.payload) == ("/orders/eu#7", [1])
    assert event.time == datetime(2026, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)


def test_ids_of_cloudevents_are_their_sources_own() -> None:
    """Two sources may use the same id for different events; a UUID stays as it is, long ids become one."""
    known = "01890000-0000-7000-8000-000000000001"
    assert read(CLOUD | {"source": "/a"}).id != read(CLOUD | {"source": "/b"}).id
    assert read(CLOUD | {"id": known}).id == known
    assert UUID(read(CLOUD | {"id": "x" * 255}).id)


@pytest.mark.parametrize(
    ("facts", "payload"),
    [
        ({}, None),
        ({"data": "text"}, "text"),
        ({"data_base64": "eyJhIjoxfQ=="}, {"a": 1}),
        ({"data_base64": "AAE=", "datacontenttype": "image/png"},
         {"data_base64": "AAE=", "datacontenttype": "image/png"}),
    ],
)  # fmt: skip
def test_data_of_cloudevents_is_the_payload(facts: dict[str, Any], payload: Any) -> None:
    """JSON is read, also in base64; other bytes are kept as they came."""
    assert read(CLOUD | facts).payload == payload


@pytest.mark.parametrize(
    ("value", "content_type", "payload"),
    [
        (b'{"a":1}', "application/json; charset=utf-8", {"a": 1}),
        (b'{"a":1}', "application/vnd.shop+json", {"a": 1}),
        (b"hello", "text/plain", "hello"),
        (b"\x00\x01", "image/png", {"data_base64": "AAE=", "datacontenttype": "image/png"}),
        (None, "application/json", None),
        (b"", "application/json", None),
    ],
)
def test_a_cloudevent_in_binary_mode_is_read(value: bytes | None, content_type: str, payload: Any) -> None:
    """Its attributes are headers, its data the value, which may be missing."""
    names = {"ce_specversion": "1.0", "CE_id": "e-1", "ce_source": "/s", "ce_type": "T", "ce_retries": "2",
             "ce_aggregatetype": "Order", "ce_correlationid": "c-1", "content-type": content_type}  # fmt: skip
    event = decode(Message("orders", "o-1", value, tuple(names.items())))
    assert event == Event("T", "Order", "o-1", payload, correlation_id="c-1", id="e-1", retries=2)


@pytest.mark.parametrize(("name", "quote"), [("type", ""), ("eventType", ""), ("type", '"')])
def test_a_row_of_an_outbox_table_is_an_event(name: str, quote: str) -> None:
    """Debezium's event router sends the payload alone; the rest are headers, topic and key."""
    headers = {"id": f"{quote}e-1{quote}", name: f"{quote}OrderPlaced{quote}", "correlation_id": "c-1"}
    event = read({"total": 7, "op": "c", "source": "web"}, '"o-1"', "outbox.event.Order", **headers)
    payload = {"total": 7, "op": "c", "source": "web"}
    assert event == Event("OrderPlaced", "Order", "o-1", payload, correlation_id="c-1", id="e-1")


def test_a_row_of_an_outbox_table_in_a_topic_of_its_own_names_its_aggregate_type() -> None:
    """The topic stands for it only where no header does."""
    assert read(7, "o-1", "orders", id="e-1", type="T").aggregate_type == "orders"
    assert read(7, "o-1", "orders", id="e-1", type="T", aggregatetype="Order").aggregate_type == "Order"


LETTER: dict[str, Any] = {
    "partition": 3,
    "offset": 9,
    "agent": "writer",
    "kind": "ValueError",
    "attempts": 4,
    "suffix": ".dlt",
}


def test_a_dead_letter_is_the_message_and_its_cause() -> None:
    """Key, value and headers stay; the handle that waits for the event can be told who gave it up and why."""
    body = json.dumps({"id": "e-1", "type": "A.B.C", "aggregate_type": "B", "aggregate_id": "b-1"}).encode()
    message = Message("outbox.event.B", "b-1", body, (("traceparent", "00-1"),))
    row = dead_letter(message, **LETTER, error="no such\0style \ud800" + "!" * 5_000)
    assert (row.topic, row.key, row.event) == ("outbox.event.B.dlt", "b-1", None)
    letter = row.message
    assert letter is not None
    assert (letter.topic, letter.value, letter.header("traceparent")) == ("outbox.event.B.dlt", body, "00-1")
    facts = {name: text for name, text in letter.headers if name.startswith("dlt-") and name != "dlt-error"}
    assert facts == {"dlt-topic": "outbox.event.B", "dlt-partition": "3", "dlt-offset": "9", "dlt-agent": "writer",
                     "dlt-error-kind": "ValueError", "dlt-attempts": "4"}  # fmt: skip
    error = letter.header("dlt-error") or ""
    assert (error[:15], len(error)) == ("no such�style ?", 2_000)
    noted = read_dead_letter(letter)
    assert noted is not None
    assert (noted.event.id, noted.dead, noted.agent, noted.error) == ("e-1", True, "writer", error)
    assert original_message(letter) == message


def test_a_dead_letter_that_dies_again_tells_its_last_end() -> None:
    """What was noted before is replaced."""
    first = dead_letter(Message("t", "k", b"?"), **LETTER, error="first").message
    assert first is not None
    second = dead_letter(Message("t", "k", b"?", first.headers), **LETTER, error="second").message
    assert second is not None
    assert [text for name, text in second.headers if name == "dlt-error"] == ["second"]


@pytest.mark.parametrize(
    "message",
    [
        Message("t", "k", b"{}"),
        Message("t.dlt", "k", b"?", (("dlt-topic", "t"),)),
        Message("t.dlt", "k", None, (("dlt-topic", "t"),)),
    ],
)
def test_what_is_no_dead_letter_of_an_event_is_none(message: Message) -> None:
    """A message that was never an event cannot be waited for."""
    assert read_dead_letter(message) is None
