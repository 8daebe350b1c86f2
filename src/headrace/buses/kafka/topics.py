"""Topics are there before anything is sent to them: made with our number of partitions, or refused.

Left to the broker a topic would get as many partitions as that likes, and a name that was mistyped would get one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace.buses.kafka.answers import later
from headrace.buses.kafka.config import client_config
from headrace.buses.kafka.faults import kafka_error, refusal, told, unavailable
from headrace.event_settings import EventSettings
from headrace.model.errors import BusUnavailableError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Topics:
    """The topics that are known to be there. Blocks its caller."""

    def __init__(self, events: EventSettings, seconds: float) -> None:
        """Nothing is connected before the first topic is asked for; an answer is awaited for `seconds`."""
        self._events, self._seconds = events, seconds
        self._admin: AdminClient | None = None
        self._known: set[str] = set()

    def missing(self, names: Iterable[str]) -> dict[str, str]:
        """Return the answers for what cannot be sent, by topic; topics that can be made are made.

        Raises BusUnavailableError where no broker tells its topics.
        """
        new = set(names) - self._known
        wrong = {name: _WRONG_NAME for name in new if not _NAME.fullmatch(name) or name in (".", "..")}
        if new := new - set(wrong):
            new -= self._look()
        if new and not self._events.kafka.create_topics:
            return {**wrong, **dict.fromkeys(new, _NOT_THERE)}
        return {**wrong, **(self._make(new) if new else {})}

    def can_be_asked(self) -> bool:
        """Say whether a broker tells its topics."""
        try:
            self._look()
        except BusUnavailableError:
            return False
        return True

    def forget(self, names: Iterable[str]) -> None:
        """Look again before anything is sent to topics."""
        self._known.difference_update(names)

    def _look(self) -> set[str]:
        try:
            listed = self._client().list_topics(timeout=self._seconds)
        except KafkaException as failure:
            raise unavailable("tell its topics", kafka_error(failure), self._events.kafka.servers) from None
        # Also without those that were there: the producer does not say of which it heard no more.
        self._known = set(listed.topics)
        return self._known

    def _make(self, names: set[str]) -> dict[str, str]:
        partitions, copies = self._events.partitions, self._events.kafka.replication or -1
        wanted = [NewTopic(name, partitions, copies) for name in sorted(names)]
        answers: dict[str, str] = {}
        for name, future in self._client().create_topics(wanted, request_timeout=self._seconds).items():
            try:
                future.result(2 * self._seconds)
            except KafkaException as failure:
                error = kafka_error(failure)
                # Another process may have made it just now.
                if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    answers[name] = _not_made(name, error)
                    continue
            self._known.add(name)
        return answers

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({**client_config(self._events.kafka), "log_level": 0})
        return self._admin


def _not_made(name: str, error: KafkaError) -> str:
    """Return the answer for what goes to a topic that cannot be made: a right or copies may be there later."""
    if reason := refusal(error):
        return f"topic {name} cannot be made: {reason}"
    return later(f"topic {name} cannot be made ({told(error)})")


_WRONG_NAME = "a topic of Kafka must have 1 to 249 letters, digits and . _ -, and not be . or .."
_NOT_THERE = "the topic does not exist, and events.kafka.create_topics is false: make it, then release the event"
