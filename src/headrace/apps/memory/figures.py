"""Figures of each kind of work of memory, as the store knows them: those of all processes together.

Jobs tell what was done: how long their last attempt took, how often they failed, how many wait. Sessions tell how many
slots there are. Looked at are the jobs that ended within `WINDOW`, the newest of them, so that a look costs the same
whatever has piled up. The cache's counts are those of whoever holds it: this process, or the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from headrace.apps.memory.cache import ResultCache
from headrace.apps.memory.opening import KINDS
from headrace.model.job import JobState, JobView
from headrace.model.ranks import percentile

if TYPE_CHECKING:
    from headrace import App
    from headrace.model.cache import CacheStats
    from headrace.model.session import SessionView
    from headrace.model.stats import QueueStats
    from headrace.ports.inspect import Inspect

#: What ended longer ago is not looked at; and jobs of one kind and state that are.
WINDOW, MOST_JOBS = timedelta(minutes=5), 500
#: States of jobs that have ended an attempt, and the group of the agent that reads changes.
_LOOKED_AT = (JobState.SUCCEEDED, JobState.FAILED, JobState.SCHEDULED)
CONSUMER_GROUP = "headrace.agent.memory_consumer"
#: Where workers tell of queues whose slots grow and shrink.
SLOTS = "headrace.slots.queues"


class Counting(Protocol):
    """Tables that count what they hold."""

    async def counts(self) -> Mapping[str, int]:
        """Return rows of the buffer by status, and flushes by state."""
        ...


@dataclass(frozen=True, slots=True)
class KindFigures:
    """One kind of work. Latencies are of attempts that ended a job lately, None where none did."""

    kind: str
    #: jobs that ended per minute, in the last one
    throughput_per_min: float = 0.0
    avg_latency_ms: float | None = None
    p50_latency_ms: float | None = None
    p99_latency_ms: float | None = None
    #: share of the attempts that failed, 0 to 1
    error_rate: float = 0.0
    #: jobs that wait for a slot, or for their next try; of changes also those that were not read yet
    queue_depth: int = 0
    #: slots of all live workers
    pool_size: int = 0
    #: jobs that the latencies are of
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """All of memory at one moment."""

    at: datetime
    kinds: tuple[KindFigures, ...]
    #: None: caching is off
    cache: CacheStats | None = None
    #: rows of the buffer by status, flushes by state
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON values, kinds by their names.

        >>> figures = Figures(datetime(2026, 5, 1, tzinfo=UTC), (KindFigures("buffer", queue_depth=3),))
        >>> figures.to_json()["kinds"]["buffer"]["queue_depth"]
        3
        """
        kinds = {one.kind: {name: value for name, value in asdict(one).items() if name != "kind"} for one in self.kinds}
        cache = None if self.cache is None else {**asdict(self.cache), "hit_rate": round(self.cache.hit_rate, 4)}
        return {"at": self.at.isoformat(), "kinds": kinds, "cache": cache, "counts": dict(self.counts)}


async def memory_figures(app: App, tables: Counting | None = None) -> Figures:
    """Return the figures of an open app, with `tables` also what they hold. Raises StoreUnavailableError."""
    inspect, now = app.runtime.stores.inspect, datetime.now(UTC)
    found, sessions = await asyncio.gather(inspect.queue_stats(), inspect.list_sessions())
    seen = await asyncio.gather(*(_seen(inspect, queue) for queue in KINDS.values()))
    stats = {queue.name: queue for queue in found}
    kinds = []
    for (kind, queue), jobs in zip(KINDS.items(), seen, strict=True):
        unread = await _unread(app) if kind == "consume" else 0
        kinds.append(figures_of(kind, stats.get(queue), jobs, now, depth=unread, slots=slots_of(queue, sessions)))
    counts = {} if tables is None else await tables.counts()
    return Figures(now, tuple(kinds), await ResultCache(app).stats(), counts)


async def _seen(inspect: Inspect, queue: str) -> list[JobView]:
    """Return the newest jobs of a queue that have ended an attempt."""
    pages = [await inspect.list_jobs(queue=queue, state=state, limit=MOST_JOBS, brief=True) for state in _LOOKED_AT]
    return [job for page in pages for job in page]


async def _unread(app: App) -> int:
    """Count the changes that the store's bus has, and the consumer has not read; of Kafka its own tools tell."""
    events = app.runtime.stores.events
    if events is None:
        return 0
    return sum(group.backlog for group in await events.log.log_groups() if group.name == CONSUMER_GROUP)


def figures_of(  # noqa: PLR0913 - what a kind is made of
    kind: str, stats: QueueStats | None, jobs: Iterable[JobView], now: datetime, *, depth: int = 0, slots: int = 0
) -> KindFigures:
    """Return the figures of a kind from its queue and the jobs of it that were seen; `depth` is added to theirs."""
    seen = list(jobs)
    recent = [job for job in seen if job.finished_at is not None and now - job.finished_at <= WINDOW]
    times = [_milliseconds(job) for job in recent if job.started_at is not None]
    failed = sum(job.failures + job.crashes for job in (*recent, *(job for job in seen if job.finished_at is None)))
    ended = failed + sum(job.state is JobState.SUCCEEDED for job in recent)
    waiting = 0 if stats is None else stats.ready + stats.scheduled
    return KindFigures(
        kind,
        throughput_per_min=0.0 if stats is None else round(stats.rate_out * 60, 2),
        avg_latency_ms=round(sum(times) / len(times), 3) if times else None,
        p50_latency_ms=percentile(times, 0.5) if times else None,
        p99_latency_ms=percentile(times, 0.99) if times else None,
        error_rate=round(failed / ended, 4) if ended else 0.0,
        queue_depth=waiting + depth,
        pool_size=slots,
        jobs=len(times),
    )


def slots_of(queue: str, sessions: Sequence[SessionView]) -> int:
    """Return the slots that live workers have for a queue: those they grew or shrank to, else those they began with."""
    total = 0
    for session in sessions:
        if session.alive and queue in session.queues:
            elastic = session.stats.get(SLOTS)
            row = elastic.get(queue) if isinstance(elastic, Mapping) else None
            size = row.get("size") if isinstance(row, Mapping) else None
            total += size if isinstance(size, int) else session.queues[queue]
    return total


def _milliseconds(job: JobView) -> float:
    assert job.started_at is not None
    assert job.finished_at is not None
    return round(max(0.0, (job.finished_at - job.started_at).total_seconds()) * 1_000, 3)
