"""The job store port: intake, claim, completion, and the sweeps that keep jobs moving.

Every write for an attempt carries its fence (job id, attempt, session) and changes nothing when the job has moved on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from headrace.model.job import Claim, ClaimedJob, Completion, NewJob
from headrace.model.session import LeaderTerm
from headrace.model.stats import Pruned, Rescued, Retention


class JobStore(Protocol):
    """Durable jobs. All methods raise StoreUnavailableError when the store cannot answer."""

    async def insert_jobs(self, jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        """Insert `jobs` in one transaction, hint their queues, and return, in order, the id under which each is stored.

        The hint is the store's here, and not the caller's as for all other verbs: a store may have it follow the commit
        at once, without the way to the caller and back.

        A keyed job whose key is known with an equal body hash is not inserted: the stored id is returned. Another
        body raises ConflictError and inserts none of `jobs`; so does a key that another open transaction is inserting,
        with KeyHeldError, after a bounded wait for that transaction. `retrying` says that an earlier call with the same
        ids ended without an answer: ids that are stored already, even as finished jobs, are then left alone. A late
        duplicate without it may run a finished job again, but never changes what it ended as.
        """
        ...

    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Move up to `claim.limit` ready jobs to running under the session and return them in claim order.

        With `claim.after` only jobs behind that place in the order.

        Skips jobs of paused queues and of batches being cancelled, never exceeds a cap, and returns nothing to a
        session that is not alive. The attempt of each job is one higher than before.
        """
        ...

    async def claimed_jobs(self, session: UUID, *, queue: str) -> list[ClaimedJob]:
        """Return the running jobs that a session holds in a queue.

        For after a claim whose answer was lost; it may scan, so it is asked only then.
        """
        ...

    async def complete_jobs(self, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        """Apply the completions whose fence holds, in one transaction, and return their job ids.

        An id that is missing from the answer was refused: the attempt had lost its job. A job that would go back is
        cancelled instead where that was requested, else failed after its third lone crash without progress. A
        released one (READY, uncharged, without delay) keeps its place; any other queues up again. A parked one waits
        for its signal or its time and then queues up; a signal that has come makes it queue up at once. Where the
        attempt has a `log`, that is kept with it, and of a job that goes back those of its last attempts only.

        The effects of a final ending (`run.Effects`) are applied with it: endings of nodes are kept, those of paths
        that have one left as they are; while the run is running, arrivals are summed by path and the jobs of those that
        are decided by it inserted, jobs are inserted with their steps, and the run moves to its level or ends. Queues
        are not hinted. A job of a run that ends without effects, here or by any other verb, is unsettled: see
        `RunStore.unsettled_jobs`.
        """
        ...

    async def exchange_jobs(
        self, session: UUID, completions: Sequence[Completion], claim: Claim
    ) -> tuple[list[UUID], list[ClaimedJob]]:
        """Do `complete_jobs` and then, in the same transaction, `claim_jobs`; return the answers of both.

        A store may leave the claim out and answer that it found nothing, where it has limit keys or where not all
        the completions are final.
        """
        ...

    async def stage_jobs(self, *, limit: int) -> frozenset[str]:
        """Move scheduled jobs that are due, and parked ones whose time has come, to ready.

        Returns the queues that gained one.
        """
        ...

    async def rescue_jobs(self, *, limit: int) -> Rescued:
        """Take back running jobs of sessions that are missing or expired.

        They become ready again with one more crash; at-most-once jobs fail with kind `worker_lost`, jobs whose
        cancel was requested are cancelled. An attempt that a farm had begun, by its step `farm.BEGUN`, did not run in
        the process that died: of that one no crash is counted, and the kind is `executor_lost`.
        """
        ...

    async def fail_overdue_jobs(self, *, grace: timedelta, limit: int, term: LeaderTerm) -> Rescued:
        """End attempts that ran longer than their timeout plus `grace`: retried while failures allow, else failed.

        The safety net for handlers that cannot be stopped (threads); kind is `timeout`. At-most-once jobs fail.
        """
        ...

    async def save_step(self, job_id: UUID, *, attempt: int, session: UUID, name: str, value: str) -> str:
        """Store the JSON text of a step, once per job and name; return the text that is stored.

        What executors keep (`model.farm.RESERVED`) is of one attempt, which its `attempt` says: it takes the place of
        what an earlier one left.
        Raises FenceLostError when the attempt no longer owns the job.
        """
        ...

    async def load_steps(self, job_id: UUID) -> dict[str, str]:
        """Return the stored steps of a job by name."""
        ...

    async def running_job(self, job_id: UUID, *, attempt: int, session: UUID) -> ClaimedJob | None:
        """Return the job that runs under a fence, as its worker got it; None when the attempt owns it no more.

        For whoever runs it elsewhere, and knows nothing but the fence.
        """
        ...

    async def read_steps(self, wanted: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], str]:
        """Return those of `wanted`, steps by job and name, that are stored; one round trip for many jobs."""
        ...

    async def prune_jobs(
        self, retention: Retention, *, limit: int, queue: str | None = None, term: LeaderTerm | None = None
    ) -> Pruned:
        """Remove at most `limit` rows of each kind that are older than their retention.

        Finished jobs with their attempts and steps (those of a batch only once it is closed, a retry only once the
        job it repeats is gone, which would count as failed again without it), closed batches without jobs, expired
        keys and answers (see `Retention.kept_answers`), sessions gone for a day. `queue` restricts it to jobs of a
        queue.
        Under a `term` that is over nothing is removed; None is an operator, who needs none.
        """
        ...
