"""Sends messages and waits until the brokers have them. Blocks its caller; one thread at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Producer

from headrace.buses.kafka.answers import Answers, is_later, later
from headrace.buses.kafka.batch import Batch
from headrace.buses.kafka.config import (
    ASK_SECONDS,
    PUBLISH_SECONDS,
    STILL_STUCK_SECONDS,
    STUCK_SECONDS,
    most_bytes,
    producer_config,
)
from headrace.buses.kafka.convert import size_of
from headrace.buses.kafka.faults import is_unknown_topic, kafka_error, refusal, told, unavailable
from headrace.buses.kafka.topics import Topics
from headrace.event_settings import EventSettings
from headrace.model.event import Message
from headrace.ports.bus import LATER

#: How long is waited at a time, so that closing is noticed.
_STEP_SECONDS = 0.2


class Sender:
    """The producer; made anew after a call that left something over, so that it does not come behind others."""

    def __init__(self, events: EventSettings, seconds: float = PUBLISH_SECONDS) -> None:
        """Nothing is connected before the first message; without brokers a call goes on trying for `seconds`."""
        self._events, self._seconds = events, seconds
        self._topics = Topics(events, min(seconds, ASK_SECONDS))
        self._producer: Producer | None = None
        self._trouble: KafkaError | None = None
        self._down: KafkaError | None = None
        self._closing = threading.Event()
        #: Topics that took nothing the last time.
        self._stuck: set[str] = set()

    def send(self, messages: Sequence[Message]) -> list[str | None]:
        """Return for each message None, it is kept, or why it is not. Raises BusUnavailableError if none can be."""
        missing = self._topics.missing({message.topic for message in messages})
        answers = Answers(messages)
        for index, message in enumerate(messages):
            if answer := missing.get(message.topic) or self._too_large(message):
                answers.note({index: answer})
        wanted = answers.hold_back()
        told_of = self._deliver(messages, wanted)
        if wanted and all(is_later(told_of.get(index, "")) for index in wanted):
            self._check_away(told_of[wanted[0]])
        answers.note(told_of)
        refused = sorted(index for index, answer in told_of.items() if not is_later(answer))
        if len(refused) > 1:
            self._try_alone(messages, refused, answers)
        return answers.settle()

    def close(self) -> None:
        """Let a call that is under way end soon."""
        self._closing.set()

    def _check_away(self, answer: str) -> None:
        """Raise if it is not the topics that take nothing, but there is nobody who could."""
        broken = self._trouble is not None and self._trouble.fatal()
        if broken or self._closing.is_set() or not self._topics.can_be_asked():
            error = self._trouble or KafkaError(KafkaError._TIMED_OUT, answer)
            raise unavailable("take messages", error, self._events.kafka.servers)

    def _try_alone(self, messages: Sequence[Message], indexes: Sequence[int], answers: Answers) -> None:
        """Send one after the other what was refused: of a batch all are refused for one of them."""
        stuck: dict[int, str] = {}
        for index in indexes:
            if stuck:
                answers.note({index: LATER})
            elif not answers.stops(index):
                answers.forget(index)
                told_of = self._deliver(messages, [index])
                answers.note(told_of)
                stuck = {late: answer for late, answer in told_of.items() if is_later(answer)}

    def _deliver(self, messages: Sequence[Message], indexes: Sequence[int]) -> dict[int, str]:
        """Send those at `indexes` and wait. Returns why for those that are not kept; raises if all is in doubt."""
        producer, batch = self._open(), Batch()
        for index in indexes:
            batch.add(producer, index, messages[index])
        self._wait(producer, batch, messages)
        late = batch.open | {index for index, error in batch.errors.items() if refusal(error) is None}
        if late:
            self._drop()
            self._check_doubt(batch)
        unknown = {index for index, error in batch.errors.items() if is_unknown_topic(error)}
        self._topics.forget({messages[index].topic for index in unknown})
        self._stuck -= {messages[index].topic for index in indexes}
        self._stuck |= {messages[index].topic for index in late}
        silence = self._trouble or KafkaError(KafkaError._TIMED_OUT)
        errors = {**dict.fromkeys(batch.open, silence), **batch.errors}
        return {index: refusal(error) or later(told(error)) for index, error in errors.items()}

    def _check_doubt(self, batch: Batch) -> None:
        """Raise if a broker may have forgotten what it acknowledged in this call: all of it is published again."""
        doubts = [error for error in batch.errors.values() if error.code() == KafkaError.DUPLICATE_SEQUENCE_NUMBER]
        if error := (doubts[0] if doubts else self._down):
            raise unavailable("take messages", error, self._events.kafka.servers)

    def _wait(self, producer: Producer, batch: Batch, messages: Sequence[Message]) -> None:
        """Wait until all are reported, or it does not help, because the time is over or their topics are stuck."""
        now = heard = time.monotonic()
        deadline = now + self._seconds
        while batch.open and now < deadline and not self._closing.is_set():
            before = len(batch.open)
            try:
                producer.flush(_STEP_SECONDS)
            except KafkaException as failure:
                self._trouble = kafka_error(failure)
                return
            now = time.monotonic()
            if len(batch.open) < before:
                heard = now
            elif now - heard >= self._patience(batch, messages):
                if batch.kept or self._topics.can_be_asked():
                    return
                heard = now = time.monotonic()

    def _patience(self, batch: Batch, messages: Sequence[Message]) -> float:
        known = {messages[index].topic for index in batch.open} <= self._stuck
        return STILL_STUCK_SECONDS if known else STUCK_SECONDS

    def _open(self) -> Producer:
        self._trouble = self._down = None
        if self._producer is None:
            self._producer = Producer({**producer_config(self._events), "error_cb": self._note, "log_level": 0})
        return self._producer

    def _note(self, error: KafkaError) -> None:
        self._trouble = error
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = error

    def _drop(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _too_large(self, message: Message) -> str | None:
        size, most = size_of(message), most_bytes(self._events)
        if size <= most:
            return None
        return f"it has {size} bytes, and at most {most} are sent: see events.max_bytes"
