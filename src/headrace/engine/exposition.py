"""Figures of queues, the outbox and workers as Prometheus reads them: its text, names of docs/reference/metrics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from headrace.model.event import OutboxStats
from headrace.model.message_log import GroupView
from headrace.model.session import SessionView
from headrace.model.stats import QueueStats

#: Meaning and value of each metric of a queue.
METRICS: dict[str, tuple[str, Callable[[QueueStats], float]]] = {
    "headrace_queue_oldest_ready_seconds": (
        "How long the oldest ready job has been ready.",
        lambda queue: (queue.oldest_ready_age or timedelta()).total_seconds(),
    ),
    "headrace_queue_in_per_second": ("Jobs enqueued, last minute.", lambda queue: queue.rate_in),
    "headrace_queue_out_per_second": ("Jobs ended, last minute.", lambda queue: queue.rate_out),
    "headrace_queue_live_workers": ("Workers that serve the queue.", lambda queue: queue.live_workers),
    "headrace_queue_paused": ("1 while nothing is claimed.", lambda queue: queue.paused),
    "headrace_queue_closed": ("1 while nothing is enqueued.", lambda queue: queue.closed),
    "headrace_queue_alarmed": ("1 while the backlog is an alarm.", lambda queue: queue.alarmed),
}
JOBS = "headrace_queue_jobs"
OUTBOX, OUTBOX_OLDEST = "headrace_outbox_events", "headrace_outbox_oldest_seconds"
BACKLOG = "headrace_bus_backlog"
WORKERS, WORKER_JOBS = "headrace_workers", "headrace_worker_jobs"
OUTBOX_STATES = ("waiting", "held", "parked")
STATES = ("scheduled", "ready", "running", "parked", "succeeded", "failed", "cancelled")


def expose(queues: Iterable[QueueStats]) -> str:
    """Return the figures of queues; one that has none of a thing says 0.

    >>> print(expose([]).splitlines()[0])
    # HELP headrace_queue_jobs Jobs by state; final ones until they are pruned.
    """
    return "\n".join(_lines(list(queues))) + "\n"


def _lines(queues: list[QueueStats]) -> Iterator[str]:
    yield f"# HELP {JOBS} Jobs by state; final ones until they are pruned."
    yield f"# TYPE {JOBS} gauge"
    for queue in queues:
        for state in STATES:
            yield f'{JOBS}{{queue="{queue.name}",state="{state}"}} {getattr(queue, state)}'
    for name, (meaning, value) in METRICS.items():
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} gauge"
        for queue in queues:
            yield f'{name}{{queue="{queue.name}"}} {float(value(queue)):g}'


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def expose_workers(workers: Iterable[SessionView]) -> str:
    """Return the figures of workers that are alive.

    >>> print(expose_workers([]).splitlines()[-1])
    headrace_worker_jobs 0
    """
    live = [worker for worker in workers if worker.alive]
    lines = [
        f"# HELP {WORKERS} Workers that are alive.",
        f"# TYPE {WORKERS} gauge",
        f"{WORKERS} {len(live)}",
        f"# HELP {WORKER_JOBS} Jobs that they run.",
        f"# TYPE {WORKER_JOBS} gauge",
        f"{WORKER_JOBS} {sum(worker.running for worker in live)}",
    ]
    return "\n".join(lines) + "\n"


def expose_outbox(stats: OutboxStats, groups: Iterable[GroupView] = ()) -> str:
    """Return the figures of the outbox, and of the groups that read the store's bus.

    >>> print(expose_outbox(OutboxStats(waiting=7)).splitlines()[2])
    headrace_outbox_events{state="waiting"} 7
    """
    lines = [
        f"# HELP {OUTBOX} Events that the bus does not have yet, by state.",
        f"# TYPE {OUTBOX} gauge",
        *(f'{OUTBOX}{{state="{state}"}} {getattr(stats, state)}' for state in OUTBOX_STATES),
        f"# HELP {OUTBOX_OLDEST} How long the oldest waiting event has been in the outbox.",
        f"# TYPE {OUTBOX_OLDEST} gauge",
        f"{OUTBOX_OLDEST} {round(stats.oldest_seconds, 3):g}",
        f"# HELP {BACKLOG} Messages of the store's bus that a group has not committed.",
        f"# TYPE {BACKLOG} gauge",
        *(f'{BACKLOG}{{group="{_label(group.name)}"}} {group.backlog}' for group in groups),
    ]
    return "\n".join(lines) + "\n"
