"""Figures of queues as Prometheus reads them: its text format, by the names of docs/reference/metrics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

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
