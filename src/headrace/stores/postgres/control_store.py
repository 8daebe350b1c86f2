"""The control port on PostgreSQL: what operators and handles ask of single jobs and queues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from headrace.model.backlog import Alarm, QueueState
from headrace.model.errors import ConflictError, InvalidInputError, NotFoundError
from headrace.model.job import CancelAnswer, JobState
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.rounds import retry_jobs


class PostgresControlStore:
    """Commands on jobs and queues."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cancel_job(self, job_id: UUID) -> CancelAnswer:
        """Cancel a job that has not started, or ask the worker of a running one. Raises NotFoundError."""
        while True:
            # The job may start, end or go back between these statements; then the next turn meets it.
            if await self._database.fetch("cancel_waiting_job", job_id=job_id):
                return CancelAnswer.CANCELLED
            if await self._database.fetch("request_cancel", job_id=job_id):
                return CancelAnswer.REQUESTED
            row = await self._database.fetch_one("get_job", job_id=job_id)
            if row is None:
                raise _no_job(job_id)
            if JobState(row["state"]).final:
                return CancelAnswer.ALREADY_FINAL

    async def retry_job(self, job_id: UUID) -> UUID:
        """Insert a copy of a failed or cancelled job (`retry_of`) and return its id."""

        async def work(tx: Transaction) -> UUID:
            row = await tx.fetch_one("lock_finished", job_id=job_id)
            if row is None:
                live = await tx.fetch_one("get_job", job_id=job_id)
                raise _no_job(job_id) if live is None else _not_retryable(live["state"])
            if row["run_id"] is not None:
                raise _of_a_run(job_id, row["run_id"], row["node"])
            if row["state"] == JobState.SUCCEEDED:
                raise _not_retryable(row["state"])
            found, made = await retry_jobs(tx, [row])
            if not found and not made:
                raise ConflictError("The batch of this job is being cancelled. Retry the job once the batch is closed.")
            return (found | made)[job_id]

        return await self._database.run(work)

    async def retry_jobs(self, jobs: Mapping[UUID, str | None]) -> dict[UUID, UUID]:
        """Retry those jobs that can be, in their order, with arguments of their own or those given."""

        async def work(tx: Transaction) -> dict[UUID, UUID]:
            held = {row["id"]: row for row in await tx.fetch("lock_retryable", job_ids=list(jobs))}
            _, made = await retry_jobs(tx, [held[job_id] for job_id in jobs if job_id in held], jobs)
            return made

        return await self._database.run(work)

    async def retry_queue(self, queue: str, *, limit: int, until: datetime | None = None) -> list[UUID]:
        """Retry up to `limit` failed jobs of a queue that were not retried before; return the new ids."""

        async def work(tx: Transaction) -> list[UUID]:
            rows = await tx.fetch("lock_dead_letters", queue=queue, limit=limit, until=until)
            _, made = await retry_jobs(tx, rows)
            return list(made.values())

        return await self._database.run(work)

    async def set_queue_paused(self, queue: str, *, paused: bool, reason: str | None = None) -> None:
        """Pause or resume claims of a queue; running jobs go on."""
        await self._database.fetch("set_queue_paused", queue=queue, paused=paused, reason=reason if paused else None)

    async def set_queue_closed(self, queue: str, *, closed: bool) -> None:
        """Close or open the intake of a queue."""
        await self._database.fetch("set_queue_closed", queue=queue, closed=closed)

    async def set_alarms(self, alarms: Mapping[str, Alarm]) -> None:
        """Set when the backlog of each queue is an alarm; queues that are not named keep theirs."""
        queues = sorted(alarms)
        sizes, ages = [alarms[queue].size for queue in queues], [alarms[queue].age for queue in queues]
        await self._database.fetch("set_alarms", queues=queues, sizes=sizes, ages=ages)

    async def queue_states(self) -> dict[str, QueueState]:
        """Return what is stored of each queue for which anything was set."""
        return {
            row["name"]: QueueState(
                row["paused"], row["reason"], row["closed"], Alarm(row["alarm_size"], row["alarm_age"])
            )
            for row in await self._database.fetch("queue_states")
        }


def _no_job(job_id: UUID) -> NotFoundError:
    return NotFoundError(f"There is no job {job_id}. It never existed, or its retention is over.")


def _of_a_run(job_id: UUID, run_id: UUID, node: str | None) -> ConflictError:
    rerun = f"headrace run rerun {run_id}" + (f" --from {node}" if node is not None else "")
    return ConflictError(f"The job {job_id} belongs to run {run_id}: use `{rerun}`.")


def _not_retryable(state: str) -> InvalidInputError:
    return InvalidInputError("job", "must be failed or cancelled", state)
