"""One member of a group, as its thread sees it: reads, commits, gives partitions up. Blocks its caller."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record

from headrace.buses.kafka.config import ASK_SECONDS, member_config, topic_pattern
from headrace.buses.kafka.convert import read_record
from headrace.buses.kafka.faults import is_unknown_topic, kafka_error, unavailable
from headrace.buses.kafka.stash import Stash
from headrace.event_settings import EventSettings
from headrace.model.message_log import Partition

LOG = logging.getLogger("headrace.events.kafka")

#: The group has changed, or changes: what is still this member's is committed later.
_CHANGING = (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID)
#: Nobody can be asked, or nobody answers us.
_AWAY = (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE)

EndWork = Callable[[Sequence[Partition]], dict[Partition, int]]
TellLost = Callable[[Sequence[Partition]], None]


class Member:
    """What it read lies in `stash`. Offsets that could not be committed are committed with the next ones."""

    def __init__(self, events: EventSettings, group: str, stash: Stash, end_work: EndWork, tell_lost: TellLost) -> None:
        """`end_work` ends what runs of partitions and returns the offsets to commit."""
        self._events, self._group, self._stash = events, group, stash
        self._end_work, self._tell_lost = end_work, tell_lost
        self._consumer: Consumer | None = None
        self._owned: set[Partition] = set()
        self._paused: frozenset[Partition] = frozenset()
        self._done: dict[Partition, int] = {}
        self._trouble: KafkaError | None = None

    def open(self, topics: Iterable[str]) -> None:
        """Join the group. Raises BusUnavailableError."""
        told = {**member_config(self._events, self._group), "error_cb": self._note, "log_level": 0}
        consumer = Consumer(told)
        try:
            consumer.list_topics(timeout=ASK_SECONDS)
            consumer.subscribe(
                [topic_pattern(topic) for topic in topics],
                on_assign=lambda _, places: self._owned.update(_names(places)),
                on_revoke=lambda _, places: self._give_up(_names(places)),
                on_lost=lambda _, places: self._lose(_names(places)),
            )
        except KafkaException as failure:
            consumer.close()
            raise self._error("be joined", kafka_error(failure)) from None
        self._consumer = consumer

    def read(self, limit: int, seconds: float) -> None:
        """Put what comes within `seconds` into the stash. Raises BusUnavailableError."""
        consumer = self._asked()
        self._pause(consumer)
        # One at a time: polling may give partitions up, and what was read of them before must be in the stash by then.
        for _ in range(limit):
            record = consumer.poll(seconds)
            if record is None:
                break
            self._keep(record)
            seconds = 0
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise self._error("be read", trouble)

    def _keep(self, record: Record) -> None:
        """Put a record into the stash if it is this member's, or note what it tells of trouble."""
        error = record.error()
        if error is None:
            delivery = read_record(record)
            if delivery.place in self._owned:
                self._stash.put([delivery])
        elif not is_unknown_topic(error):
            self._trouble = error

    def commit(self, offsets: dict[Partition, int]) -> None:
        """Note offsets of partitions that are its own. Raises BusUnavailableError."""
        self._done.update((place, offset) for place, offset in offsets.items() if place in self._owned)
        self._commit(self._owned)

    def close(self) -> None:
        """End what runs, commit and leave the group. Without brokers that can last for ever: the caller has a limit."""
        if self._consumer is None:
            return
        self._give_up(self._owned)
        consumer, self._consumer = self._consumer, None
        consumer.close()

    def _asked(self) -> Consumer:
        assert self._consumer is not None, "members are opened before they read, and not used once closed"
        return self._consumer

    def _pause(self, consumer: Consumer) -> None:
        """Tell librdkafka what is paused and no longer paused of its own."""
        wanted, known = self._stash.paused & self._owned, self._paused & self._owned
        if stop := wanted - known:
            consumer.pause(_places(stop))
        if go := known - wanted:
            consumer.resume(_places(go))
        self._paused = wanted

    def _commit(self, places: Iterable[Partition]) -> None:
        known = set(places)
        wanted = [TopicPartition(*place, offset) for place, offset in self._done.items() if place in known]
        if not wanted:
            return
        try:
            answers = self._asked().commit(offsets=wanted, asynchronous=False)
            errors = [answer.error for answer in answers if answer.error is not None]
        except KafkaException as failure:
            errors = [kafka_error(failure)]
        if not errors:
            for place in wanted:
                self._done.pop((place.topic, place.partition), None)
        elif errors[0].code() not in _CHANGING:
            raise self._error("note how far its group is", errors[0])

    def _give_up(self, places: Iterable[Partition]) -> None:
        """End what runs of partitions and commit how far it came, before they go to another member."""
        leaving = sorted(self._owned.intersection(places))
        self._stash.drop(leaving)
        if not leaving:
            return
        self._done.update(self._end_work(leaving))
        try:
            self._commit(leaving)
        except Exception as error:
            LOG.warning("group %s could not note how far it is, its messages come again: %s", self._group, error)
        self._forget(leaving)

    def _lose(self, places: Sequence[Partition]) -> None:
        self._stash.drop(places)
        self._forget(places)
        self._tell_lost(places)

    def _forget(self, places: Sequence[Partition]) -> None:
        self._owned.difference_update(places)
        for place in places:
            self._done.pop(place, None)

    def _note(self, error: KafkaError) -> None:
        if error.code() in _AWAY:
            self._trouble = error

    def _error(self, doing: str, error: KafkaError) -> Exception:
        return unavailable(f"let group {self._group} {doing}", error, self._events.kafka.servers)


def _names(places: Iterable[TopicPartition]) -> list[Partition]:
    return [(place.topic, place.partition) for place in places]


def _places(names: Iterable[Partition]) -> list[TopicPartition]:
    return [TopicPartition(*name) for name in names]
