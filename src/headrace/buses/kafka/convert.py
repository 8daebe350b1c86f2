"""Messages as Kafka has them, and as we do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import confluent_kafka

from headrace.model.event import Message
from headrace.ports.bus import Delivery

if TYPE_CHECKING:
    from confluent_kafka._types import HeadersType


def read_record(record: confluent_kafka.Message) -> Delivery:
    """Return a record as it was received. What is no UTF-8 in key or headers is replaced, what is missing is ""."""
    topic, partition, offset = record.topic(), record.partition(), record.offset()
    assert topic is not None and partition is not None and offset is not None, "records have a place"
    message = Message(topic, _text(record.key()), record.value(), _headers(record.headers()))
    return Delivery(message, partition, offset)


def kafka_headers(message: Message) -> HeadersType:
    """Return the headers of a message for Kafka."""
    return [(name, value.encode()) for name, value in message.headers]


def _headers(headers: HeadersType | None) -> tuple[tuple[str, str], ...]:
    pairs = headers.items() if isinstance(headers, dict) else headers or ()
    return tuple((name, _text(value)) for name, value in pairs)


def _text(value: bytes | str | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def size_of(message: Message) -> int:
    """Return the bytes of a message."""
    headers = sum(len(name.encode()) + len(value.encode()) for name, value in message.headers)
    return len(message.value or b"") + len(message.key.encode()) + headers
