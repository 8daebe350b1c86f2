"""The memory store as tests look at it: what is there, whether anything goes on, and time that passes at once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from datetime import timedelta

from headrace.clock import SystemClock
from headrace.model.batch import BatchState
from headrace.model.job import JobState, JobView
from headrace.stores.memory import stores_over
from headrace.stores.memory.notifier import MemoryNotifier
from headrace.stores.memory.rows import Finished, Job
from headrace.stores.memory.state import TIMED, State
from headrace.stores.memory.views import job_view

_CLOSING = (BatchState.SEALED, BatchState.CANCELLING)


class MemoryTables:
    """Empty stores in memory, and a look at their tables from any thread."""

    def __init__(self) -> None:
        self._state = State(SystemClock())
        self.stores = stores_over(self._state, MemoryNotifier())

    @property
    def ended(self) -> int:
        """How many jobs have ended so far: a place for `ended_since`."""
        return len(self._state.finished)

    def jobs(self) -> list[JobView]:
        """Return every job there is or was, the oldest first."""
        with self._state.lock:
            rows: list[Job | Finished] = [*self._state.jobs.values(), *self._state.finished.values()]
            return sorted(map(job_view, rows), key=lambda view: (view.created_at, view.ordinal or 0, view.id))

    def ended_since(self, place: int) -> list[JobView]:
        """Return the jobs that ended behind a place, in the order of their ends."""
        with self._state.lock:
            rows = sorted(self._state.finished.values(), key=lambda row: row.commit)[place:]
            return [job_view(row) for row in rows]

    def unended(self, of: Callable[[JobView], bool]) -> list[JobView]:
        """Return the jobs of a kind that end by themselves: what waits for a signal, or is held, does not."""
        with self._state.lock:
            going = [job for job in self._state.jobs.values() if not _is_held(job)]
            return list(filter(of, map(job_view, going)))

    def goes_on(self, queues: Collection[str]) -> list[JobView]:
        """Return the jobs that run or may be claimed from `queues` now: none of queues that are paused."""
        with self._state.lock:
            return [job_view(job) for job in self._state.jobs.values() if self._is_going(job, queues)]

    def _is_going(self, job: Job, queues: Collection[str]) -> bool:
        if job.state is JobState.RUNNING:
            return True
        setting = self._state.queues.get(job.spec.queue)
        return job.state is JobState.READY and job.spec.queue in queues and not (setting and setting.paused)

    @property
    def closes(self) -> bool:
        """Whether a batch is about to close, or what the end of a node sets going in its run is not known yet."""
        with self._state.lock:
            batches = self._state.batches.values()
            return bool(self._state.runs.unsettled) or any(b.state in _CLOSING and not b.live for b in batches)

    def time_left(self, queues: Collection[str], tasks: Collection[str]) -> timedelta | None:
        """Return how long it takes until the next of the jobs of `tasks` in `queues` is due; None: there is none."""
        with self._state.lock:
            due = [
                job.run_at
                for job in self._state.jobs.values()
                if job.state in TIMED and job.run_at and job.spec.queue in queues and job.spec.task in tasks
            ]
            return max(min(due) - self._state.now(), timedelta()) if due else None

    async def pass_time(self, step: timedelta) -> None:
        """Let `step` pass for everything that waits for a time, and make ready what is due."""
        with self._state.lock:
            for job in self._state.jobs.values():
                if job.state in TIMED and job.run_at is not None:
                    job.run_at -= step
            self._state.scheduled = [(at - step, job_id) for at, job_id in self._state.scheduled]
            heapq.heapify(self._state.scheduled)
        for queue in await self.stores.jobs.stage_jobs(limit=len(self._state.jobs) or 1):
            self.stores.notifier.hint(f"queue:{queue}")


def _is_held(job: Job) -> bool:
    return job.state is JobState.PARKED and job.parked_on is not None
