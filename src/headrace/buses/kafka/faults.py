"""What broker errors mean: this message will never be taken, or not now."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from headrace.model.errors import BusUnavailableError

#: What is wrong with one message and stays so, with what helps.
_FOR_EVER = {
    KafkaError.MSG_SIZE_TOO_LARGE: "it is larger than the topic's max.message.bytes",
    KafkaError.RECORD_LIST_TOO_LARGE: "it is larger than the topic's segments",
    KafkaError.TOPIC_EXCEPTION: "the broker does not take the name of the topic",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "this account may not write to the topic",
    KafkaError.POLICY_VIOLATION: "a policy of the broker forbids it",
    KafkaError.INVALID_RECORD: "the topic does not take such a record",
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the topic's format of messages is too old for it",
}
_UNKNOWN_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


def refusal(error: KafkaError) -> str | None:
    """Return why a message will never be taken; None: this may go by."""
    reason = _FOR_EVER.get(error.code())
    return None if reason is None else f"{reason} ({error.name()})"


def is_unknown_topic(error: KafkaError) -> bool:
    """Say whether an error tells that a topic is not there."""
    return error.code() in _UNKNOWN_TOPIC


def kafka_error(failure: KafkaException) -> KafkaError:
    """Return what an exception carries."""
    carried: Any = failure.args[0] if failure.args else None
    return carried if isinstance(carried, KafkaError) else KafkaError(KafkaError._FAIL, str(failure))


def told(error: KafkaError) -> str:
    """Return the name and the text of an error."""
    return f"{error.name()}: {error.str()}"


def unavailable(doing: str, error: KafkaError, servers: str) -> BusUnavailableError:
    """Return the error that says what could not be done, and where to look."""
    return BusUnavailableError(
        f"Kafka cannot {doing} ({told(error)}). Check [events.kafka] servers ({servers}) and that the brokers run."
    )
