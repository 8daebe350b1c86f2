"""Caps, and what runs under them: counted from the running rows each time, so that nothing can leak."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from headrace.model.limits import queue_cap
from headrace.stores.memory.lanes import gate_of
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State


@dataclass(slots=True)
class Usage:
    """How many jobs use each cap, and each concurrency key of a queue."""

    caps: Counter[str] = field(default_factory=Counter)
    keys: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, job: Job) -> None:
        """Count a running job."""
        self.caps.update(caps_of(job))
        self.add_key(job)

    def of(self, name: str) -> int:
        """Return how many jobs use the cap of a name."""
        kind, _, rest = name.partition(":")
        queue, _, key = rest.partition(":")
        return self.keys[queue, key] if kind == "key" else self.caps[name]

    def add_key(self, job: Job) -> None:
        """Count a job that runs under a concurrency key, or keeps an in-order one while it waits for its next run."""
        gate = gate_of(job.spec)
        if gate.key is not None:
            self.keys[job.spec.queue, gate.key] += 1


def count_usage(state: State) -> Usage:
    """Count what runs, and what keeps a key."""
    usage = Usage()
    for job in state.running.values():
        usage.add(job)
    for job in state.keeping.values():
        usage.add_key(job)
    return usage


def caps_of(job: Job) -> list[str]:
    """Return the names of the caps that a job counts against, sorted."""
    return sorted({queue_cap(job.spec.queue), *gate_of(job.spec).caps})


def key_holder(state: State, job: Job) -> Job | None:
    """Return a job that runs under the concurrency key of `job`, or keeps it, with the lowest id."""
    place = (job.spec.queue, gate_of(job.spec).key)
    held = [other for table in (state.running, state.keeping) for other in table.values()]
    return min((other for other in held if _place(other) == place), key=lambda other: other.id, default=None)


def _place(job: Job) -> tuple[str, str | None]:
    return job.spec.queue, gate_of(job.spec).key
