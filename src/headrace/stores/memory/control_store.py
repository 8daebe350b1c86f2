"""Commands of operators and handles, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from heapq import nsmallest
from typing import Any
from uuid import UUID

from headrace.model.backlog import Alarm, QueueState
from headrace.model.batch import BatchState
from headrace.model.errors import ConflictError, InvalidInputError, NotFoundError
from headrace.model.job import CancelAnswer, JobState
from headrace.stores.memory.batches import retry_jobs
from headrace.stores.memory.rows import Finished, Job, QueueSetting
from headrace.stores.memory.state import State, atomic


class MemoryControlStore:
    """`ports.control_store.ControlStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    @atomic
    async def cancel_job(self, job_id: UUID) -> CancelAnswer:
        """Cancel a job that has not started, or ask for it."""
        if job_id in self._state.finished:
            return CancelAnswer.ALREADY_FINAL
        job = self._state.jobs.get(job_id)
        if job is None:
            raise _no_job(job_id)
        if job.state is JobState.RUNNING:
            job.cancel_requested = True
            return CancelAnswer.REQUESTED
        self._state.finish(job, JobState.CANCELLED)
        return CancelAnswer.CANCELLED

    @atomic
    async def retry_job(self, job_id: UUID) -> UUID:
        """Insert a copy of a failed or cancelled job, once."""
        row = self._state.finished.get(job_id)
        if row is None:
            if job_id in self._state.jobs:
                raise InvalidInputError("job", "must be failed or cancelled", self._state.jobs[job_id].state.value)
            raise _no_job(job_id)
        if row.job.run_id is not None:
            raise _of_run(row.job)
        if row.state is JobState.SUCCEEDED:
            raise InvalidInputError("job", "must be failed or cancelled", row.state.value)
        if job_id in self._state.retries:
            return self._state.retries[job_id]
        if _batch_state(self._state, row) is BatchState.CANCELLING:
            raise ConflictError("The batch of this job is being cancelled. Retry the job once the batch is closed.")
        return retry_jobs(self._state, [row])[0]

    @atomic
    async def retry_jobs(self, jobs: Mapping[UUID, str | None]) -> dict[UUID, UUID]:
        """Retry those jobs that can be, in their order."""
        rows = [row for row in (self._state.finished.get(job_id) for job_id in jobs) if row and self._retryable(row)]
        copies = retry_jobs(self._state, rows, jobs)
        return {row.job.id: copy for row, copy in zip(rows, copies, strict=True)}

    def _retryable(self, row: Finished) -> bool:
        unsuccessful = row.state is not JobState.SUCCEEDED and row.job.id not in self._state.retries
        return unsuccessful and row.job.run_id is None and _batch_state(self._state, row) is not BatchState.CANCELLING

    @atomic
    async def retry_queue(self, queue: str, *, limit: int, until: datetime | None = None) -> list[UUID]:
        """Retry failed jobs of a queue, oldest first."""
        dead = [
            row
            for row in self._state.finished.values()
            if (row.state, row.job.spec.queue) == (JobState.FAILED, queue)
            and self._retryable(row)
            and (until is None or row.finished_at <= until)
        ]
        return retry_jobs(self._state, nsmallest(limit, dead, key=lambda row: (row.finished_at, row.job.id)))

    @atomic
    async def set_queue_paused(self, queue: str, *, paused: bool, reason: str | None = None) -> None:
        """Pause or resume claims of a queue."""
        self._set(queue, paused=paused, reason=reason if paused else None)

    @atomic
    async def set_queue_closed(self, queue: str, *, closed: bool) -> None:
        """Close or open the intake of a queue."""
        self._set(queue, closed=closed)

    @atomic
    async def set_alarms(self, alarms: Mapping[str, Alarm]) -> None:
        """Set alarms; queues that are not named keep theirs."""
        for queue, alarm in alarms.items():
            self._set(queue, alarm=alarm)

    @atomic
    async def queue_states(self) -> dict[str, QueueState]:
        """Return what is set of queues."""
        return {
            name: QueueState(row.paused, row.reason, row.closed, row.alarm) for name, row in self._state.queues.items()
        }

    def _set(self, queue: str, **changes: Any) -> None:
        self._state.queues[queue] = replace(self._state.queues.get(queue, QueueSetting()), **changes)


def _batch_state(state: State, row: Finished) -> BatchState | None:
    return None if row.job.batch_id is None else state.batches[row.job.batch_id].state


def _of_run(job: Job) -> ConflictError:
    start = "" if job.node is None else f" --from {job.node}"
    return ConflictError(f"Job {job.id} belongs to run {job.run_id}: use `headrace run rerun {job.run_id}{start}`.")


def _no_job(job_id: UUID) -> NotFoundError:
    return NotFoundError(f"There is no job {job_id}. It never existed, or its retention is over.")
