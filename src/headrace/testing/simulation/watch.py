"""The tables of the memory store, which note the jobs that a verb moved: so only those have to be looked at."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from headrace.model.job import Park
from headrace.ports.clock import Clock
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State


class WatchedState(State):
    """Notes in `moved` every job that the elementary moves touch. Whoever reads it empties it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.moved: dict[UUID, None] = {}

    def wait(self, job: Job, *, until: datetime | None) -> None:
        """Make a job scheduled or ready."""
        self.moved[job.id] = None
        super().wait(job, until=until)

    def park(self, job: Job, park: Park) -> None:
        """Make a job parked, or ready."""
        self.moved[job.id] = None
        super().park(job, park)

    def make_ready(self, job: Job, *, sort_at: datetime) -> None:
        """Make a job ready."""
        self.moved[job.id] = None
        super().make_ready(job, sort_at=sort_at)

    def start(self, job: Job, session: UUID) -> None:
        """Make a ready job running."""
        self.moved[job.id] = None
        super().start(job, session)

    def finish(self, job: Job, *args, **kwargs) -> None:  # type: ignore[no-untyped-def]
        """Move a job to history."""
        self.moved[job.id] = None
        super().finish(job, *args, **kwargs)
