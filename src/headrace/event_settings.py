"""`[events]` and `[events.kafka]`: how events leave, what carries them, and how long what is left of them is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.event import MAX_EVENT_BYTES, TOPIC, check_topics

BUSES = ("store", "kafka")
FORMATS = ("headrace", "cloudevents")
PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
_TOPIC, _SUFFIX = re.compile(r"[A-Za-z0-9._-]{1,200}"), re.compile(r"[._-][A-Za-z0-9._-]{0,30}")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """`[events.kafka]`: how to reach the brokers. Needs headrace[kafka]."""

    #: brokers to begin with, such as "kafka-1:9092,kafka-2:9092"
    servers: str = ""
    #: "plaintext", "ssl", "sasl_plaintext" or "sasl_ssl"
    security_protocol: str = "plaintext"
    #: such as "SCRAM-SHA-512"; with the two that begin with "sasl"
    sasl_mechanism: str = ""
    #: account
    sasl_username: str = ""
    #: its password
    sasl_password: str = field(default="", repr=False)
    #: file of certificates that the brokers' are checked with; empty: those of the system
    ca_file: str = ""
    #: a member of a group that is silent this long loses its partitions
    session_timeout: timedelta = timedelta(seconds=45)
    #: whether topics that do not exist are made, with `[events] partitions`
    create_topics: bool = True
    #: on how many brokers topics that are made are kept; 0: as the brokers are set up
    replication: int = 0


@dataclass(frozen=True, slots=True)
class EventSettings:
    """`[events]`: the outbox, the bus and agents."""

    #: what carries events: "store" (the store itself) or "kafka"
    bus: str = "store"
    #: topic of an event; {aggregate_type} stands for that of the event
    topic: str = TOPIC
    #: partitions of topics that are made: as many members of a group may read at once
    partitions: int = 8
    #: how events are written: "headrace" or "cloudevents"; both are read, and those of Debezium
    format: str = "headrace"
    #: where events come from, as `source` of CloudEvents
    source: str = "/headrace"
    #: most bytes of JSON of an event's payload
    max_bytes: int = MAX_EVENT_BYTES
    #: longest wait of the relay, and of members of the store's bus, when no hint arrives
    poll_interval: timedelta = timedelta(milliseconds=500)
    #: most events that the relay sends at once
    relay_batch: int = 500
    #: what is added to the name of a topic for that of its dead letters
    dead_letter_suffix: str = ".dlt"
    #: a member of a group on the store's bus that is silent this long loses its partitions
    member_lease: timedelta = timedelta(seconds=10)
    #: topics in which resume handles look for results; empty: all that `topic` may name
    callback_topics: str = ""
    #: how long the log of events is kept
    keep_events: timedelta = timedelta(days=30)
    #: how long is kept which messages were handled: as long none is handled twice
    keep_inbox: timedelta = timedelta(days=7)
    #: how long messages of the store's bus are kept
    keep_messages: timedelta = timedelta(days=7)
    #: how long resume handles are kept after their end, and events that came early without one
    keep_handles: timedelta = timedelta(days=7)
    #: Prefect's API, such as http://127.0.0.1:4200/api, where suspended flow runs are woken
    prefect_api_url: str = ""
    #: its key, where it asks for one
    prefect_api_key: str = field(default="", repr=False)
    kafka: KafkaSettings = KafkaSettings()

    @property
    def watched_topics(self) -> tuple[str, ...]:
        """The topics that resume handles are resolved from; one that ends with "*" stands for all that begin so."""
        if self.callback_topics:
            return tuple(part.strip() for part in self.callback_topics.split(",") if part.strip())
        return (self.topic.partition("{aggregate_type}")[0] + "*",)


def check_events(events: EventSettings) -> None:
    """Raise ConfigError naming key, rule and value for what does not fit."""
    _one_of("events.bus", events.bus, BUSES)
    _one_of("events.format", events.format, FORMATS)
    _one_of("events.kafka.security_protocol", events.kafka.security_protocol, PROTOCOLS)
    fixed = events.topic.replace("{aggregate_type}", "x")
    rule = "must be letters, digits and . _ -, with {aggregate_type} at most once"
    _require(
        bool(_TOPIC.fullmatch(fixed)) and events.topic.count("{aggregate_type}") <= 1, "topic", rule, repr(events.topic)
    )
    rule = "must begin with . _ or - and have at most 31 letters, digits and . _ -"
    _require(bool(_SUFFIX.fullmatch(events.dead_letter_suffix)), "dead_letter_suffix", rule, events.dead_letter_suffix)
    _require(1 <= events.partitions <= 1_000, "partitions", "must be from 1 to 1000", events.partitions)
    _require(1 <= events.relay_batch <= 10_000, "relay_batch", "must be from 1 to 10000", events.relay_batch)
    _require(1_024 <= events.max_bytes <= 100_000_000, "max_bytes", "must be from 1024 to 100000000", events.max_bytes)
    for name in ("poll_interval", "member_lease", "keep_events", "keep_inbox", "keep_messages", "keep_handles"):
        duration: timedelta = getattr(events, name)
        _require(duration > timedelta(), name, "must be longer than zero", format_duration(duration))
    _check_callback_topics(events)
    _check_kafka(events)
    url = urlsplit(events.prefect_api_url)
    rule = "must be a URL such as http://127.0.0.1:4200/api"
    fits = not events.prefect_api_url or (url.scheme in ("http", "https") and bool(url.hostname))
    _require(fits, "prefect_api_url", rule, repr(events.prefect_api_url))


def _check_callback_topics(events: EventSettings) -> None:
    _require(
        not events.callback_topics or bool(events.watched_topics), "callback_topics", "must name topics, or be empty",
        repr(events.callback_topics),
    )  # fmt: skip
    try:
        check_topics("callback_topics", events.watched_topics if events.callback_topics else ())
    except InvalidInputError as error:
        raise ConfigError(f"events.callback_topics {error.rule}, got {error.value!r}") from None


def _port_fits(server: str) -> bool:
    return 1 <= int(server.rpartition(":")[2]) <= 65_535


def _check_kafka(events: EventSettings) -> None:
    kafka = events.kafka
    servers = [part.strip() for part in kafka.servers.split(",")] if kafka.servers else []
    _require(bool(servers) or events.bus != "kafka", "kafka.servers", "must be given with bus = 'kafka'", "''")
    rule = "must be host:port, several of them separated by commas"
    _require(all(_SERVER.fullmatch(server) for server in servers), "kafka.servers", rule, repr(kafka.servers))
    rule = "must have ports from 1 to 65535"
    _require(all(map(_port_fits, servers)), "kafka.servers", rule, repr(kafka.servers))
    rule = "must be a file that exists, or be empty for the certificates of the system"
    _require(not kafka.ca_file or Path(kafka.ca_file).is_file(), "kafka.ca_file", rule, repr(kafka.ca_file))
    _check_login(kafka)
    rule = "must be from 6 s to 5 min"
    fits = timedelta(seconds=6) <= kafka.session_timeout <= timedelta(minutes=5)
    _require(fits, "kafka.session_timeout", rule, format_duration(kafka.session_timeout))
    _require(0 <= kafka.replication <= 100, "kafka.replication", "must be from 0 to 100", kafka.replication)


def _check_login(kafka: KafkaSettings) -> None:
    sasl = kafka.security_protocol.startswith("sasl")
    rule = "must be given with a security_protocol that begins with sasl, and only then"
    _require(sasl == bool(kafka.sasl_mechanism), "kafka.sasl_mechanism", rule, repr(kafka.sasl_mechanism))
    rule = f"must be one of {', '.join(MECHANISMS)}"
    fits = not sasl or kafka.sasl_mechanism.upper() in MECHANISMS
    _require(fits, "kafka.sasl_mechanism", rule, repr(kafka.sasl_mechanism))


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def _require(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ConfigError(f"events.{name} {rule}, got {value}")
