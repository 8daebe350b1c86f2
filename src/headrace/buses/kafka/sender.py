"""Sends messages and waits until the brokers have them. Blocks its caller; one thread at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError, KafkaException, Producer

from headrace.buses.kafka.batch import Batch
from headrace.buses.kafka.config import ASK_SECONDS, PUBLISH_SECONDS, most_bytes, producer_config
from headrace.buses.kafka.convert import size_of
from headrace.buses.kafka.faults import is_unknown_topic, kafka_error, refusal, unavailable
from headrace.buses.kafka.topics import Topics
from headrace.event_settings import EventSettings
from headrace.model.event import Message
from headrace.ports.bus import BEHIND

#: How long is waited at a time, so that closing is noticed.
_STEP_SECONDS = 0.2


class Sender:
    """The producer; made anew after a call that failed, so that what it still holds does not come behind others."""

    def __init__(self, events: EventSettings, seconds: float = PUBLISH_SECONDS) -> None:
        """Nothing is connected before the first message; a call goes on trying for `seconds`."""
        self._events, self._seconds = events, seconds
        self._topics = Topics(events, min(seconds, ASK_SECONDS))
        self._producer: Producer | None = None
        self._trouble: KafkaError | None = None
        self._closing = threading.Event()

    def send(self, messages: Sequence[Message]) -> list[str | None]:
        """Return for each message why it will never be taken, or None: it is kept. Raises BusUnavailableError."""
        missing = self._topics.missing({message.topic for message in messages})
        answers: dict[int, str] = {}
        stopped: set[tuple[str, str]] = set()
        for index, message in enumerate(messages):
            _note(answers, index, message, stopped, missing.get(message.topic) or self._too_large(message))
        refused = self._deliver(messages, [index for index in range(len(messages)) if index not in answers])
        if len(refused) > 1:
            refused = self._try_alone(messages, sorted(refused))
        answers.update(refused)
        return [answers.get(index) for index in range(len(messages))]

    def close(self) -> None:
        """Let a call that is under way end soon, without success."""
        self._closing.set()

    def _try_alone(self, messages: Sequence[Message], indexes: Sequence[int]) -> dict[int, str]:
        """Send one after the other what was refused: of a batch all are refused for one of them."""
        answers: dict[int, str] = {}
        stopped: set[tuple[str, str]] = set()
        for index in indexes:
            message = messages[index]
            free = (message.topic, message.key) not in stopped
            reason = self._deliver(messages, [index]).get(index) if free else None
            _note(answers, index, message, stopped, reason)
        return answers

    def _deliver(self, messages: Sequence[Message], indexes: Iterable[int]) -> dict[int, str]:
        """Send those at `indexes` and wait. Returns which are refused for ever and why; raises for anything else."""
        producer, batch = self._open(), Batch()
        for index in indexes:
            batch.add(producer, index, messages[index])
        self._wait(producer, batch)
        errors = [error for error in batch.errors.values() if refusal(error) is None]
        if batch.open or errors:
            self._drop()
            if any(is_unknown_topic(error) for error in errors):
                self._topics.forget({message.topic for message in messages})
            error = errors[0] if errors else self._trouble or KafkaError(KafkaError._TIMED_OUT)
            raise unavailable("take messages", error, self._events.kafka.servers)
        return {index: reason for index, error in batch.errors.items() if (reason := refusal(error))}

    def _wait(self, producer: Producer, batch: Batch) -> None:
        """Wait until all are reported, the time is over, the producer is broken or is closed."""
        deadline = time.monotonic() + self._seconds
        while batch.open and time.monotonic() < deadline and not self._closing.is_set():
            try:
                producer.flush(_STEP_SECONDS)
            except KafkaException as failure:
                self._trouble = kafka_error(failure)
                return

    def _open(self) -> Producer:
        self._trouble = None
        if self._producer is None:
            self._producer = Producer({**producer_config(self._events), "error_cb": self._note, "log_level": 0})
        return self._producer

    def _note(self, error: KafkaError) -> None:
        self._trouble = error

    def _drop(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _too_large(self, message: Message) -> str | None:
        size, most = size_of(message), most_bytes(self._events)
        if size <= most:
            return None
        return f"it has {size} bytes, and at most {most} are sent: see events.max_bytes"


def _note(
    answers: dict[int, str], index: int, message: Message, stopped: set[tuple[str, str]], reason: str | None
) -> None:
    """Note that a message is refused, or is kept back behind one of its topic and key that is."""
    lane = message.topic, message.key
    if lane in stopped:
        answers[index] = BEHIND
    elif reason is not None:
        answers[index] = reason
        stopped.add(lane)
