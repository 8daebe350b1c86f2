"""Parked jobs by the signals they wait for, and the signals that came."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from headrace.stores.memory.rows import Job


@dataclass(frozen=True, slots=True)
class Signal:
    """The first signal of a key, JSON text, and when it came."""

    payload: str
    came_at: datetime


@dataclass(slots=True)
class WaitingRoom:
    """`waiting` is an index over parked jobs, by key; those without a key are not in it."""

    signals: dict[str, Signal] = field(default_factory=dict)
    waiting: defaultdict[str, dict[UUID, Job]] = field(default_factory=lambda: defaultdict(dict))

    def enter(self, job: Job) -> None:
        """Add a job that parks."""
        if job.parked_on is not None:
            self.waiting[job.parked_on][job.id] = job

    def leave(self, job: Job) -> None:
        """Remove a job that is parked no more."""
        if job.parked_on is not None:
            jobs = self.waiting[job.parked_on]
            jobs.pop(job.id, None)
            if not jobs:
                del self.waiting[job.parked_on]
            job.parked_on = None
