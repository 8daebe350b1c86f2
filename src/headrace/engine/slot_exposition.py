"""Slots of workers, by queue, as people and Prometheus read them; elastic ones are told of with each heartbeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.engine.telemetry import SLOTS
from headrace.model.session import SessionView

#: Meaning and value of each metric, of a queue's figures in one worker; those of live workers are added up.
METRICS: dict[str, tuple[str, Callable[[Mapping[str, Any]], int]]] = {
    "headrace_queue_slots": ("Slots of live workers.", lambda row: row["size"]),
    "headrace_queue_slots_min": ("The fewest slots that they may shrink to.", lambda row: row["min"]),
    "headrace_queue_slots_max": ("The most slots that they may grow to.", lambda row: row["max"]),
    "headrace_queue_slots_eligible": (
        "Jobs that more slots could start, at the last look.",
        lambda row: row["eligible"],
    ),
    "headrace_queue_slots_held": (
        "Workers that saw a limit hold jobs, at the last look.",
        lambda row: int(bool(row["held_by"])),
    ),
}


def slots_of(session: SessionView) -> dict[str, dict[str, Any]]:
    """Return the slots of a worker by queue: size, bounds, and of elastic ones what was seen at the last look."""
    elastic = session.stats.get(SLOTS, {})
    return {queue: elastic.get(queue) or _fixed(size) for queue, size in session.queues.items()}


def _fixed(size: int) -> dict[str, Any]:
    return {"size": size, "min": size, "max": size, "eligible": 0, "used": None, "held_by": None}


def expose_slots(workers: Iterable[SessionView], *, queue: str | None = None) -> str:
    """Return the figures of the queues that live workers serve, or of one.

    >>> print(expose_slots([]).splitlines()[1])
    # TYPE headrace_queue_slots gauge
    """
    sums: Counter[tuple[str, str]] = Counter()
    for worker in workers:
        for name, row in slots_of(worker).items() if worker.alive else ():
            if queue in (None, name):
                sums.update({(metric, name): value(row) for metric, (_, value) in METRICS.items()})
    names = sorted({name for _, name in sums})
    lines = []
    for metric, (meaning, _) in METRICS.items():
        lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} gauge"]
        lines += [f'{metric}{{queue="{name}"}} {sums[metric, name]}' for name in names]
    return "\n".join(lines) + "\n"
