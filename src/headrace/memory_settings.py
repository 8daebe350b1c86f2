"""`[memory]`: when buffers of users are flushed, how they are split and shared, and what is kept of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError

TRIGGER, DEBEZIUM = "trigger", "debezium"
LANGUAGES = ("auto", "en", "zh")
MODES = ("small", "medium", "large", "smart")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_BATCH, MOST_TOKENS, MOST_ROWS = 100, 1_000_000, 10_000
#: Of one call of an agent.
MOST_CHANGES = 1_000
_TIMES = (
    *("idle_flush", "lease", "sweep_interval", "retry_failed_after", "cache_ttl", "checkpoint_interval"),
    *("metrics_interval", "alert_latency"),
)
LEAST_LEASE, LONGEST = timedelta(seconds=5), timedelta(days=30)
#: Whoever waits for a flush looks at it until it has ended, also after the database was away for long.
LEAST_KEPT, LONGEST_KEPT = timedelta(days=1), timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """`[memory]`: memory of users, made of their messages."""

    #: schema of its tables, in the database of the store; one schema is one project
    schema: str = "headrace_memory"
    #: who tells of changes of the buffer table: "trigger", by the outbox of the store, or "debezium", by Kafka
    source: str = TRIGGER
    #: Debezium's `topic.prefix`; changes are read from the topic PREFIX.SCHEMA.buffer_zone
    prefix: str = "memory"
    #: true reads the rows of Debezium's snapshots as changes too; false passes them over
    read_snapshots: bool = False
    #: a buffer is full when the tokens of what waits in it pass this
    buffer_tokens: int = 1024
    #: a buffer that is not full is flushed when nothing has come into it for so long
    idle_flush: timedelta = timedelta(hours=1)
    #: tokens that one flush takes at most; a larger buffer is split in the order of time
    most_tokens: int = 16_384
    #: how long a flush may stay in processing without a sign of life
    lease: timedelta = timedelta(seconds=60)
    #: time between looks for idle buffers and for flushes whose lease has ended; at most a minute
    sweep_interval: timedelta = timedelta(seconds=5)
    #: flushes that failed for good are tried again after so long, three times
    retry_failed_after: timedelta = timedelta(hours=1)
    #: language of what is written: "en", "zh", or "auto", that of the messages
    language: str = "auto"
    #: true: small buffers of several users are summarised in one call of the model
    enable_batching: bool = True
    #: how long a small buffer waits for others
    batch_window: timedelta = timedelta(seconds=5)
    #: buffers of one call at most
    max_batch_size: int = 20
    #: how many buffers a call takes: "small" 5, "medium" 10, "large" 20, or "smart", by latency and throughput
    batch_mode: str = "smart"
    #: true: what the model made of equal messages is taken from the cache
    enable_caching: bool = True
    #: entries and megabytes of the cache at most, and how long one is good
    cache_entries: int = 10_000
    cache_size_mb: int = 1024
    cache_ttl: timedelta = timedelta(hours=1)
    #: true keeps the messages once they are memory; false deletes them in the transaction that stores it
    keep_blobs: bool = True
    #: a flush that is done, with its summary and what the model made of it, is deleted after so long; events, profiles
    #: and messages stay
    keep_flushes: timedelta = timedelta(days=30)
    #: a checkpoint of what goes on is kept in each such interval, so that the next is at most two of them away
    checkpoint_interval: timedelta = timedelta(seconds=30)
    #: changes that one step of the consumer takes at most
    consume_batch_size: int = 100
    #: rows that one statement writes at most
    storage_batch_size: int = 500
    #: time between looks at the figures of each kind of work
    metrics_interval: timedelta = timedelta(seconds=10)
    #: from how many waiting jobs of a kind on an alert is raised
    alert_depth: int = 10_000
    #: above which share of failed attempts of a kind an alert is raised, 0 to 1
    alert_error_rate: float = 0.1
    #: above which mean time of an attempt of a kind an alert is raised
    alert_latency: timedelta = timedelta(seconds=30)
    #: YAML or JSON file of topics, slots and tags; empty: the usual ones
    profile: str = ""


def check_memory(memory: MemorySettings) -> None:
    """Raise ConfigError naming key, rule and value for what does not fit."""
    _require(_NAME.fullmatch(memory.schema), "schema", "must be 1 to 63 of a-z 0-9 _", memory.schema)
    taken = memory.schema.startswith("pg_") or memory.schema == "information_schema"
    _require(not taken, "schema", "must be none of PostgreSQL's own, which begin with pg_", memory.schema)
    rule = "must be 1 to 64 of A-Z a-z 0-9 _ - without a point"
    _require(_PREFIX.fullmatch(memory.prefix), "prefix", rule, memory.prefix)
    _require(memory.source in (TRIGGER, DEBEZIUM), "source", f'must be "{TRIGGER}" or "{DEBEZIUM}"', memory.source)
    _require(memory.language in LANGUAGES, "language", _one_of(LANGUAGES), memory.language)
    _require(memory.batch_mode in MODES, "batch_mode", _one_of(MODES), memory.batch_mode)
    most = memory.most_tokens
    _require(
        64 <= memory.buffer_tokens <= most, "buffer_tokens", "must be from 64 to most_tokens", memory.buffer_tokens
    )
    _require(most <= MOST_TOKENS, "most_tokens", f"must be at most {MOST_TOKENS:,}", most)
    size, entries, megabytes = memory.max_batch_size, memory.cache_entries, memory.cache_size_mb
    _require(1 <= size <= MOST_BATCH, "max_batch_size", f"must be from 1 to {MOST_BATCH}", size)
    _require(entries >= 1, "cache_entries", "must be at least 1", entries)
    _require(megabytes >= 1, "cache_size_mb", "must be at least 1", megabytes)
    for name, bound in (("consume_batch_size", MOST_CHANGES), ("storage_batch_size", MOST_ROWS)):
        rows: int = getattr(memory, name)
        _require(1 <= rows <= bound, name, f"must be from 1 to {bound:,}", rows)
    _require(memory.alert_depth >= 1, "alert_depth", "must be at least 1", memory.alert_depth)
    rate = memory.alert_error_rate
    _require(0 < rate <= 1, "alert_error_rate", "must be above 0 and at most 1", rate)
    _check_times(memory)


def _check_times(memory: MemorySettings) -> None:
    _require(memory.lease >= LEAST_LEASE, "lease", "must be at least 5s", format_duration(memory.lease))
    for name in _TIMES:
        value: timedelta = getattr(memory, name)
        rule = f"must be longer than zero and at most {format_duration(LONGEST)}"
        _require(timedelta() < value <= LONGEST, name, rule, format_duration(value))
    kept = memory.keep_flushes
    _require(LEAST_KEPT <= kept <= LONGEST_KEPT, "keep_flushes", "must be from 1d to 3650d", format_duration(kept))
    pause = memory.sweep_interval
    _require(pause <= timedelta(minutes=1), "sweep_interval", "must be at most 1m", format_duration(pause))
    window = memory.batch_window
    _require(
        timedelta() <= window <= timedelta(hours=1), "batch_window", "must be from 0s to 1h", format_duration(window)
    )


def _one_of(names: tuple[str, ...]) -> str:
    return "must be one of " + ", ".join(names)


def _require(holds: object, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ConfigError(f"memory.{name} {rule}, got {value}")
