"""What librdkafka is told: `[events]` and `[events.kafka]` by its names."""

from __future__ import annotations

import re
from typing import Any

from headrace.event_settings import EventSettings, KafkaSettings

#: Added to the largest payload for envelope, key, headers and those of a dead letter; brokers take 1,048,588 at first.
ENVELOPE_BYTES = 100 * 1024
_RECORD_BYTES = 1_024
#: How long one call of publish goes on trying, seconds.
PUBLISH_SECONDS = 20.0
#: How long is waited for what a broker answers at once, seconds.
ASK_SECONDS = 5.0
#: How long is waited for messages while none is acknowledged, though the brokers are there, seconds.
STUCK_SECONDS = 5.0
#: The same for topics that took nothing the last time.
STILL_STUCK_SECONDS = 1.0
#: How soon topics that begin as wanted are found, milliseconds.
_LOOK_AGAIN_MS = 5_000


def client_config(kafka: KafkaSettings) -> dict[str, Any]:
    """Return what every client is told: where the brokers are, and who asks."""
    told = {
        "bootstrap.servers": kafka.servers,
        "client.id": "headrace",
        "security.protocol": kafka.security_protocol,
        "sasl.mechanism": kafka.sasl_mechanism.upper(),
        "sasl.username": kafka.sasl_username,
        "sasl.password": kafka.sasl_password,
        "ssl.ca.location": kafka.ca_file,
        # A broker that is back is found within these.
        "reconnect.backoff.max.ms": 2_000,
        "socket.connection.setup.timeout.ms": 10_000,
    }
    return {name: value for name, value in told.items() if value != ""}


def most_bytes(events: EventSettings) -> int:
    """Return the most bytes of one message that is sent."""
    return events.max_bytes + ENVELOPE_BYTES


def producer_config(events: EventSettings) -> dict[str, Any]:
    """Return what the producer is told: every replica confirms, and order is kept when something is sent again."""
    return {
        **client_config(events.kafka),
        "acks": "all",
        "enable.idempotence": True,
        # Topics are made by us: the broker would make them as it likes.
        "allow.auto.create.topics": False,
        # What records cost beside their bytes; what is too large we say ourselves.
        "message.max.bytes": most_bytes(events) + _RECORD_BYTES,
        # As the clients of Java do, so that a key has one partition whoever writes it.
        "partitioner": "murmur2_random",
        # What is published at once leaves at once: it is flushed.
        "linger.ms": 100,
        # Longer than a call: nothing times out on its own while what is behind it goes on.
        "delivery.timeout.ms": int(2_000 * PUBLISH_SECONDS),
        "topic.metadata.propagation.max.ms": 3_000,
    }


def member_config(events: EventSettings, group: str) -> dict[str, Any]:
    """Return what a member of a group is told: offsets are committed by hand, and only what moves is given up."""
    return {
        **client_config(events.kafka),
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": int(events.kafka.session_timeout.total_seconds() * 1_000),
        "heartbeat.interval.ms": int(events.kafka.session_timeout.total_seconds() * 1_000 / 10),
        "topic.metadata.refresh.interval.ms": _LOOK_AGAIN_MS,
        "allow.auto.create.topics": False,
        # What waits to be received, per member.
        "queued.max.messages.kbytes": 16 * 1024,
    }


def topic_pattern(topic: str) -> str:
    r"""Return a topic as a subscription names it; one that ends with "*" stands for all that begin so.

    >>> topic_pattern("outbox.event.*")
    '^outbox\\.event\\..*'
    >>> topic_pattern("characters")
    'characters'
    """
    return f"^{re.escape(topic[:-1])}.*" if topic.endswith("*") else topic
