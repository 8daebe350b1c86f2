"""Envelopes of events: what is written is read as it was, and whatever is no event is refused by name."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.envelopes import EnvelopeError, decode, encode
from headrace.model.errors import InvalidInputError
from headrace.model.event import Event, Message

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,12}(\.[A-Za-z][A-Za-z0-9_]{0,12}){2}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=255)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
TIMES = st.none() | st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9998, 1, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(seconds=-1172))]),
)
EVENTS = st.builds(
    Event, NAMES, TEXTS, TEXTS, VALUES, correlation_id=st.none() | TEXTS, causation_id=st.none() | TEXTS, id=TEXTS,
    time=TIMES, schema_version=st.integers(1, 2**31 - 1), retries=st.integers(0, 2**31 - 1),
)  # fmt: skip
EVENT = Event("Genesis.Session.Started", "GenesisSession", "s-1", {"style": "grim"}, id="e-1")


def sent(body: Any, **headers: str) -> Message:
    """Return a message with a body, bytes or what becomes JSON."""
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = tuple((name.replace("_", "-") if name == "content_type" else name, text) for name, text in headers.items())
    return Message("orders", "k-1", value, named)


@pytest.mark.parametrize("form", ["headrace", "cloudevents"])
@settings(max_examples=60, deadline=None)
@given(event=EVENTS)
def test_what_is_written_is_read_as_it_was(form: str, event: Event) -> None:
    """Every fact of an event, of any text, survives both forms, in a topic of any name."""
    message = encode(event, form, "/shop", "some.topic")
    assert decode(message) == event
    assert (message.key, message.header("id"), message.header("type")) == (event.aggregate_id, event.id, event.type)
    assert message.header("correlation_id") == event.correlation_id


def test_a_message_of_ours_says_what_it_is_in_its_headers() -> None:
    """Ids are headers where they are known; what is not known is left out."""
    message = encode(EVENT, "headrace", "/shop", "t")
    assert dict(message.headers) == {
        "id": "e-1", "type": "Genesis.Session.Started", "retries": "0",
        "content-type": "application/vnd.headrace.event+json",
    }  # fmt: skip
    assert json.loads(message.value or b"") == {
        "id": "e-1", "type": "Genesis.Session.Started", "aggregate_type": "GenesisSession", "aggregate_id": "s-1",
        "correlation_id": None, "causation_id": None, "time": None, "schema_version": 1, "retries": 0,
        "payload": {"style": "grim"},
    }  # fmt: skip


def test_a_cloudevent_of_ours_keeps_to_the_specification() -> None:
    """Attributes are lower case, those that are unknown are left out, times end with Z."""
    event = Event("A.B.C", "B", "b-1", [1], correlation_id="c-1", id="e-1", time=datetime(2026, 5, 1, tzinfo=UTC))
    message = encode(event, "cloudevents", "/shop", "t")
    assert message.header("content-type") == "application/cloudevents+json"
    assert json.loads(message.value or b"") == {
        "specversion": "1.0", "id": "e-1", "source": "/shop", "type": "A.B.C", "subject": "b-1",
        "time": "2026-05-01T00:00:00Z", "datacontenttype": "application/json", "aggregatetype": "B",
        "correlationid": "c-1", "schemaversion": 1, "retries": 0, "data": [1],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["headrace", "cloudevents"])
def test_a_payload_may_be_as_deep_in_an_envelope_as_it_may_be_alone(form: str) -> None:
    """64 levels are the bound of the payload, not of what is around it."""
    payload: Any = []
    for _ in range(63):
        payload = [payload]
    event = Event("A.B.C", "B", "b-1", payload, id="e-1")
    assert decode(encode(event, form, "/shop", "t")) == event
    with pytest.raises(InvalidInputError, match="64"):
        encode(Event("A.B.C", "B", "b-1", [payload]), form, "/shop", "t")


@pytest.mark.parametrize(
    "time",
    [datetime(2026, 1, 1), datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))],
)
def test_times_that_cannot_be_told_are_refused(time: datetime) -> None:
    """A time without a zone is ambiguous, one behind the year 9999 has no text."""
    with pytest.raises(InvalidInputError, match="time"):
        encode(Event("A.B.C", "B", "b-1", time=time), "headrace", "/shop", "t")


FACTS = {"id": "e-1", "type": "A.B.C", "aggregate_type": "B", "aggregate_id": "b-1"}
CLOUD = {"specversion": "1.0", "id": "e-1", "source": "/x", "type": "T"}
BAD = [
    (sent(b""), "message value must be JSON"),
    (sent(b"\xff\xfe"), "message value must be UTF-8"),
    (sent(b'{"a": NaN}'), "NaN is not JSON"),
    (sent(b'{"a": 1e999}'), "too large a number"),
    (sent(b'{"a": 1, "a": 2}'), "'a' stands twice"),
    (sent(b"[" * 100_000), "message value must not be nested so deeply"),
    (sent(b'{"id":"e","type":"A","aggregate_type":"B","aggregate_id":"b","payload":' + b"[" * 65 + b"]" * 65 + b"}"),
     "payload must not be nested deeper than 64"),
    (sent(b"1" * 5000), "message value must be JSON"),
    (sent([1]), "message value must be Headrace's envelope"),
    (sent({"hello": 1}), "message value must be Headrace's envelope"),
    (sent({}, content_type="application/vnd.headrace.event+json"), "type must be a text of 1 to 255 characters"),
    (sent([], content_type="application/vnd.headrace.event+json"), "message value must be a JSON object"),
    (sent([], content_type="application/cloudevents+json"), "message value must be a JSON object"),
    (sent([], content_type="application/cloudevents-batch+json"), "header content-type must be"),
    (sent(FACTS | {"id": ""}), "id must be a text"),
    (sent(FACTS | {"id": "x" * 256}), "id must be a text"),
    (sent(FACTS | {"aggregate_id": "a\0"}), "aggregate_id must be a text"),
    (sent(FACTS | {"correlation_id": "\ud800"}), "correlation_id must be a text"),
    (sent(FACTS | {"causation_id": 7}), "causation_id must be a text"),
    (sent(FACTS | {"time": "yesterday"}), "time must be a time such as"),
    (sent(FACTS | {"time": "2026-02-30T00:00:00Z"}), "time must be a time such as"),
    (sent(FACTS | {"time": 7}), "time must be a time such as"),
    (sent(FACTS | {"schema_version": 0}), "schema_version must be a whole number from 1"),
    (sent(FACTS | {"retries": True}), "retries must be a whole number from 0"),
    (sent(FACTS | {"retries": 2**31}), "retries must be a whole number from 0"),
    (sent(FACTS | {"payload": "a\0"}), "payload must not contain NUL"),
    (sent(FACTS | {"payload": "\ud800"}), "payload must not contain lone surrogates"),
    (sent({k: v for k, v in CLOUD.items() if k != "id"}), "id must be a text"),
    (sent({k: v for k, v in CLOUD.items() if k != "source"}), "source must be a text"),
    (sent(CLOUD | {"specversion": "0.3"}), "specversion must be \"1.0\", got '0.3'"),
    (sent(CLOUD | {"data_base64": "?"}), "data_base64 must be base64"),
    (sent(CLOUD | {"data_base64": [1]}), "data_base64 must be base64"),
    (sent(CLOUD | {"data_base64": "YWJj"}), "data_base64 must be JSON"),
    (sent(CLOUD | {"data_base64": "MQ==", "data": 1}), "data_base64 must not be given beside data"),
    (sent(b"?", ce_specversion="1.0", ce_id="e", ce_source="/x", ce_type="T"), "message value must be JSON"),
    (sent(b"1", ce_specversion="2.0", ce_id="e", ce_source="/x", ce_type="T"), "specversion must be"),
    (sent({"op": "c", "source": 7}), "source must be an object"),
    (sent({"op": "z", "source": {}}), "op must be one of c, u, d, r, t, m"),
    (sent({"op": [], "source": {}}), "op must be one of"),
    (sent({"op": "c", "source": {"table": "t"}}), "name must be a text"),
    (sent({"op": "c", "source": {"name": "db"}}), "table must be a text"),
    (sent({"op": "c", "source": {"name": "db", "table": "t", "ts_ms": "now"}}), "source.ts_ms must be milliseconds"),
    (sent({"op": "c", "source": {"name": "db", "table": "t", "ts_ms": 10**30}}), "source.ts_ms must be milliseconds"),
    (sent({"op": "c", "source": {"name": "db", "table": "t"}, "after": "\0"}), "payload must not contain NUL"),
    (Message("t", "[" * 65 + "]" * 65, b'{"op":"c","source":{"name":"db","table":"t"}}'),
     "message key must not be nested deeper than 64"),
    (sent({"a": 1}, id="e-1"), "header type must be given"),
    (sent({"a": 1}, id="", type="T"), "header id must be a text"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "text"), BAD)
def test_what_is_no_event_is_refused_by_name(message: Message, text: str) -> None:
    """The error names the field and the rule that is broken."""
    with pytest.raises(EnvelopeError) as caught:
        decode(message)
    assert text in str(caught.value)
    assert caught.value.code == "bad_envelope"


def _decodes_or_is_refused(message: Message) -> None:
    try:
        event = decode(message)
    except EnvelopeError:
        return
    assert event is None or encode(event, "cloudevents", "/x", "t").value


@settings(max_examples=150, deadline=None)
@given(value=st.none() | st.binary(), key=st.text(), headers=st.lists(st.tuples(st.text(), st.text()), max_size=3))
def test_no_bytes_raise_anything_else(value: bytes | None, key: str, headers: list[tuple[str, str]]) -> None:
    """Whatever comes, decoding ends with an event, with None, or with an EnvelopeError."""
    _decodes_or_is_refused(Message("t", key, value, tuple(headers)))


SEEDS = [
    {"specversion": "1.0", "id": "e", "source": "/s", "type": "T", "subject": "s", "time": "2026-05-01T00:00:00Z",
     "data": {}, "datacontenttype": "application/json", "data_base64": None, "iodebeziumop": "c",
     "iodebeziumname": "db", "iodebeziumtable": "t", "iodebeziumlsn": "7", "iodebeziumtsms": "1"},
    {"schema": {}, "payload": {"op": "c", "before": None, "after": {}, "ts_ms": 1, "message": {},
     "source": {"name": "db", "table": "t", "schema": "s", "db": "d", "lsn": 1, "sequence": "[]", "ts_ms": 1}}},
    FACTS | {"payload": {}, "time": "2026-05-01T00:00:00Z", "retries": 1, "schema_version": 2},
]  # fmt: skip
ODD: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "\0",
    "\ud800",
    "x" * 300,
    [],
    [[]],
    {},
    {"payload": 1},
    "2026-05-01T00:00:00Z",
]


def _bent(draw: random.Random, value: Any) -> Any:
    """Return a value, some part of which became another kind of thing or is gone."""
    if draw.random() < 0.2:
        return draw.choice(ODD)
    if isinstance(value, dict):
        return {name: _bent(draw, part) if draw.random() < 0.5 else part
                for name, part in value.items() if draw.random() < 0.9}  # fmt: skip
    return value


def test_envelopes_with_wrong_parts_raise_nothing_else() -> None:
    """Known forms with parts of other kinds, in values, keys and headers, are read or refused."""
    draw = random.Random(8)
    types = ["application/cloudevents+json", "application/json", "text/plain", "application/vnd.headrace.event+json"]
    for _ in range(1_500):
        body = json.dumps(_bent(draw, draw.choice(SEEDS))).encode()
        names = draw.sample(["id", "type", "ce_specversion", "ce_id", "ce_type", "ce_source", "ce_data_base64"], 3)
        headers = tuple((name, str(draw.choice(["1.0", "e", *ODD]))) for name in names if draw.random() < 0.5)
        if draw.random() < 0.5:
            headers += (("content-type", draw.choice(types)),)
        key = draw.choice(["", "k", '{"id": 1}', '{"a": 1, "b": [2]}', '{"id": null}', "[" * 3000, '"\\ud800"', "\0"])
        _decodes_or_is_refused(Message("outbox.event.B", key, body, headers))
