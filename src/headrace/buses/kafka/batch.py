"""What becomes of the messages that are handed to a producer together."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Record

from headrace.buses.kafka.convert import kafka_headers
from headrace.buses.kafka.faults import kafka_error
from headrace.model.event import Message

#: How long is waited at a time while the producer is full.
_STEP_SECONDS = 0.2
#: Tansu forgets messages when it is killed, and not their numbers: the retry would be taken for a repetition.
_REPEATED = KafkaError(KafkaError.DUPLICATE_SEQUENCE_NUMBER, "it says that it has messages, and not where")


class Batch:
    """What becomes of the messages of one call, by their index."""

    def __init__(self) -> None:
        """None was sent yet."""
        self.open: set[int] = set()
        self.kept: set[int] = set()
        self.errors: dict[int, KafkaError] = {}

    def add(self, producer: Producer, index: int, message: Message) -> None:
        """Send a message."""
        self.open.add(index)
        while True:
            try:
                producer.produce(
                    message.topic,
                    message.value,
                    message.key,
                    headers=kafka_headers(message),
                    on_delivery=self._report(index),
                )
                return
            except BufferError:
                producer.poll(_STEP_SECONDS)
            except KafkaException as failure:
                self._end(index, kafka_error(failure))
                return

    def _report(self, index: int) -> Callable[[KafkaError | None, Record], None]:
        def reported(error: KafkaError | None, record: Record) -> None:
            # Without an offset the broker took it for something it has already: that is not known to be durable.
            self._end(index, error if error or record.offset() is not None else _REPEATED)

        return reported

    def _end(self, index: int, error: KafkaError | None) -> None:
        self.open.discard(index)
        if error is None:
            self.kept.add(index)
        else:
            self.errors[index] = error
