"""The job store port on PostgreSQL: intake, claim, completion, and the sweeps that keep jobs moving."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.model.job import Claim, ClaimedJob, Completion, NewJob
from headrace.stores.postgres import completion, intake
from headrace.stores.postgres.database import Database, Row, Transaction
from headrace.stores.postgres.rows import claimed_job


class PostgresJobStore:
    """Durable jobs. Each verb is one statement or one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert_jobs(self, jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        """Insert `jobs` in one transaction and return, in order, the id under which each is stored."""
        return await intake.insert_jobs(self._database, jobs, retrying=retrying)

    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Move up to `claim.limit` ready jobs to running under the session and return them in claim order."""
        values = {"session": claim.session, "queue": claim.queue, "limit": claim.limit}
        if claim.limit_keys:
            keys = sorted(set(claim.limit_keys))

            async def work(tx: Transaction) -> list[Row]:
                await tx.fetch("lock_limits", keys=keys)
                return await tx.fetch("claim_capped_jobs", keys=keys, **values)

            rows = await self._database.run(work)
        else:
            rows = await self._database.fetch("claim_jobs", **values)
        # UPDATE … RETURNING gives no order.
        rows.sort(key=lambda row: (row["sort_at"], row["id"]))
        return [claimed_job(row) for row in rows]

    async def complete_jobs(self, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        """Apply the completions whose fence holds, in one transaction, and return their job ids."""
        return await completion.complete_jobs(self._database, session, completions)
