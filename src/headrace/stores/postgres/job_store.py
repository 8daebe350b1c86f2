"""The job store port on PostgreSQL: intake, claim, completion, and the sweeps that keep jobs moving."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from headrace.model.errors import FenceLostError, HeadraceError
from headrace.model.job import Claim, ClaimedJob, Completion, NewJob
from headrace.model.session import LeaderTerm
from headrace.model.stats import Pruned, Rescued, Retention
from headrace.stores.postgres import completion, intake, pruning
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.outbox import EVENTS
from headrace.stores.postgres.rows import claim_values, claimed_jobs, held_jobs
from headrace.stores.postgres.sweeps import Sweeper


class PostgresJobStore:
    """Durable jobs. Each verb is one statement or one transaction; `hot` has connections with pinned plans."""

    def __init__(self, database: Database, hot: Database, notifier: PostgresNotifier) -> None:
        self._database, self._hot, self._notifier = database, hot, notifier
        self._sweeper = Sweeper(database)

    async def insert_jobs(self, jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        """Insert `jobs` in one transaction, hint, and return, in order, the id under which each is stored."""
        if len(jobs) == 1 and jobs[0].key is None and jobs[0].run_id is None and not retrying:
            return [await self._insert_job(jobs[0])]
        ids = await intake.insert_jobs(self._database, jobs, retrying=retrying)
        for queue in {job.spec.queue for job in jobs}:
            self._notifier.hint(f"queue:{queue}")
        return ids

    async def _insert_job(self, job: NewJob) -> UUID:
        topic = f"queue:{job.spec.queue}"
        if (ride := self._notifier.ride(topic)) is not None:
            # A hint that is refused comes as an error of a job that is stored: below it is recognised by its id.
            with suppress(HeadraceError):
                await intake.insert_job(self._database, job, ride)
                self._notifier.hint_here(topic)
                return job.id
        await intake.insert_jobs(self._database, [job], retrying=ride is not None)
        self._notifier.hint(topic)
        return job.id

    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Move up to `claim.limit` ready jobs to running under the session and return them in claim order."""
        return claimed_jobs(await self._hot.fetch("claim_jobs", session=claim.session, **claim_values(claim)))

    async def claimed_jobs(self, session: UUID, *, queue: str) -> list[ClaimedJob]:
        """Return the running jobs that a session holds in a queue."""
        return held_jobs(await self._database.fetch("claimed_jobs", session=session, queue=queue))

    async def complete_jobs(self, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        """Apply the completions whose fence holds, in one transaction, and return their job ids."""
        return (await self._complete(session, completions))[0]

    async def exchange_jobs(
        self, session: UUID, completions: Sequence[Completion], claim: Claim
    ) -> tuple[list[UUID], list[ClaimedJob]]:
        """Complete and claim in one round trip; see `complete_jobs` and `claim_jobs`."""
        return await self._complete(session, completions, claim)

    async def _complete(
        self, session: UUID, completions: Sequence[Completion], claim: Claim | None = None
    ) -> tuple[list[UUID], list[ClaimedJob]]:
        exchanged = await completion.complete_jobs(self._hot, session, completions, claim)
        if completion.leaving(completions):
            self._notifier.hint(EVENTS)
        return exchanged

    async def stage_jobs(self, *, limit: int) -> frozenset[str]:
        """Move scheduled jobs that are due, and parked ones whose time has come, to ready; return their queues."""
        return frozenset(row["queue"] for row in await self._hot.fetch("stage_jobs", limit=limit))

    async def rescue_jobs(self, *, limit: int) -> Rescued:
        """Take back running jobs of sessions that are missing or expired."""
        return await self._sweeper.rescue(limit=limit)

    async def fail_overdue_jobs(self, *, grace: timedelta, limit: int, term: LeaderTerm) -> Rescued:
        """End attempts that ran longer than their timeout plus `grace`: retried while failures allow, else failed."""
        return await self._sweeper.fail_overdue(grace=grace, limit=limit, term=term)

    async def save_step(self, job_id: UUID, *, attempt: int, session: UUID, name: str, value: str) -> str:
        """Store the JSON text of a step, once per job and name; return the text that is stored."""
        row = await self._database.fetch_one(
            "save_step", job_id=job_id, attempt=attempt, session=session, name=name, value=value
        )
        if row is None:
            raise FenceLostError
        return str(row["value"])

    async def load_steps(self, job_id: UUID) -> dict[str, str]:
        """Return the stored steps of a job by name."""
        rows = await self._database.fetch("load_steps", job_id=job_id)
        return {row["name"]: row["value"] for row in rows}

    async def running_job(self, job_id: UUID, *, attempt: int, session: UUID) -> ClaimedJob | None:
        """Return the job that runs under a fence, as its worker got it; None when the attempt owns it no more."""
        row = await self._database.fetch_one("running_job", job_id=job_id, attempt=attempt, session=session)
        return None if row is None else claimed_jobs([row])[0]

    async def read_steps(self, wanted: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], str]:
        """Return those of `wanted`, steps by job and name, that are stored."""
        jobs, names = [job for job, _ in wanted], [name for _, name in wanted]
        rows = await self._database.fetch("read_steps", jobs=jobs, names=names) if wanted else []
        return {(row["job_id"], row["name"]): row["value"] for row in rows}

    async def prune_jobs(
        self, retention: Retention, *, limit: int, queue: str | None = None, term: LeaderTerm | None = None
    ) -> Pruned:
        """Remove at most `limit` rows of each kind that are older than their retention."""
        return await pruning.prune_jobs(self._database, retention, limit=limit, queue=queue, term=term)
