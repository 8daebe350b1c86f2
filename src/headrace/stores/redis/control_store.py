"""The control port on Redis: what operators and handles ask of single jobs and queues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from headrace.model.backlog import Alarm, QueueState
from headrace.model.errors import ConflictError, InvalidInputError, NotFoundError
from headrace.model.ids import uuid7, uuid7s
from headrace.model.job import CancelAnswer
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import alarm_words, micros, parse_id, queue_state, to_json
from headrace.stores.redis.run_rows import run_of

#: Dead letters that one script retries; a longer retry is several.
RETRY_PART = 200


class RedisControlStore:
    """Commands on jobs and queues."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def cancel_job(self, job_id: UUID) -> CancelAnswer:
        """Cancel a job that has not started, or ask the worker of a running one. Raises NotFoundError."""
        verdict = await self._namespace.run("cancel_job", job_id.hex)
        if verdict == "missing":
            raise _no_job(job_id)
        return CancelAnswer(verdict)

    async def retry_job(self, job_id: UUID) -> UUID:
        """Insert a copy of a failed or cancelled job (`retry_of`) and return its id."""
        verdict, detail = await self._namespace.run("retry_job", job_id.hex, uuid7().hex)
        if verdict == "missing":
            raise _no_job(job_id)
        if verdict == "unfit":
            raise InvalidInputError("job", "must be failed or cancelled", detail)
        if verdict == "run":
            raise _of_run(job_id, *run_of(detail))
        if verdict == "cancelling":
            raise ConflictError("The batch of this job is being cancelled. Retry the job once the batch is closed.")
        return parse_id(detail)

    async def retry_jobs(self, jobs: Mapping[UUID, str | None]) -> dict[UUID, UUID]:
        """Retry those jobs that can be, in their order and in one step; return the new ids by the old ones."""
        if not jobs:
            return {}
        wanted = to_json([[job_id.hex, text or ""] for job_id, text in jobs.items()])
        made = await self._namespace.run("retry_jobs", wanted, *(copy.hex for copy in uuid7s(len(jobs))))
        return {parse_id(old): parse_id(new) for old, new in zip(made[::2], made[1::2], strict=True)}

    async def retry_queue(self, queue: str, *, limit: int, until: datetime | None = None) -> list[UUID]:
        """Retry up to `limit` failed jobs of a queue that were not retried before; return the new ids."""
        made: list[UUID] = []
        place, latest = 0, "+inf" if until is None else micros(until)
        while len(made) < limit and place >= 0:
            copies = [copy.hex for copy in uuid7s(min(limit - len(made), RETRY_PART))]
            place, used = await self._namespace.run("retry_queue", queue, place, latest, *copies)
            made += map(parse_id, used)
        return made

    async def set_queue_paused(self, queue: str, *, paused: bool, reason: str | None = None) -> None:
        """Pause or resume claims of a queue; running jobs go on."""
        await self._namespace.run("set_queue_paused", queue, int(paused), reason or "")

    async def set_queue_closed(self, queue: str, *, closed: bool) -> None:
        """Close or open the intake of a queue."""
        await self._namespace.run("set_queue_closed", queue, int(closed))

    async def set_alarms(self, alarms: Mapping[str, Alarm]) -> None:
        """Set when the backlog of each queue is an alarm; queues that are not named keep theirs."""
        if alarms:
            words = [word for queue, alarm in alarms.items() for word in (queue, *alarm_words(alarm))]
            await self._namespace.run("set_alarms", *words)

    async def queue_states(self) -> dict[str, QueueState]:
        """Return what is stored of each queue for which anything was set."""
        found = await self._namespace.run("queue_states")
        return {queue: queue_state(fields) for queue, fields in zip(found[::2], found[1::2], strict=True)}


def _no_job(job_id: UUID) -> NotFoundError:
    return NotFoundError(f"There is no job {job_id}. It never existed, or its retention is over.")


def _of_run(job_id: UUID, run_id: UUID, node: str) -> ConflictError:
    begin = f" --from {node}" if node else ""
    return ConflictError(f"job {job_id} belongs to run {run_id}: use `headrace run rerun {run_id}{begin}`")
