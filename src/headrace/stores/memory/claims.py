"""Claiming: the ready jobs of a queue without a gate, in order."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

from headrace.model.batch import BatchState
from headrace.model.job import Claim, ClaimedJob, JobState
from headrace.stores.memory.caps import Usage
from headrace.stores.memory.gate import Keeper
from headrace.stores.memory.lanes import OPEN_GATE
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State


async def claim_jobs(state: State, claim: Claim) -> list[ClaimedJob]:
    """Start up to `claim.limit` jobs under the session and return them in claim order."""
    if not state.alive(claim.session) or paused(state, claim.queue) or claim.queue in state.limits.gated:
        return []
    claimed: list[ClaimedJob] = []
    while len(claimed) < claim.limit:
        job = state.ready.pop(claim.queue, [OPEN_GATE.text], partial(claimable, state), after=claim.after)
        if job is None:
            break
        state.start(job, claim.session)
        claimed.append(as_claimed(job))
    return claimed


def claimed_jobs(state: State, session: UUID, queue: str) -> list[ClaimedJob]:
    """Return the running jobs of a session in a queue, in claim order."""
    held = [job for job in state.running.values() if job.session == session and job.spec.queue == queue]
    gated, keeper = queue in state.limits.gated, Keeper(state, Usage())
    return [as_claimed(job, gated=gated, refused=keeper.refusal(job)) for job in sorted(held, key=_order)]


def _order(job: Job) -> tuple[datetime | None, UUID]:
    return job.sort_at, job.id


def paused(state: State, queue: str) -> bool:
    """Whether an operator paused a queue."""
    setting = state.queues.get(queue)
    return setting is not None and setting.paused


def claimable(state: State, job_id: UUID) -> Job | None:
    """Return the job unless it was cancelled, or belongs to a batch that is being cancelled (and so never runs)."""
    job = state.jobs.get(job_id)
    if job is None or job.state is not JobState.READY:
        return None
    if job.batch_id is not None and state.batches[job.batch_id].state is BatchState.CANCELLING:
        return None
    return job


def as_claimed(job: Job, *, gated: bool = False, refused: str | None = None) -> ClaimedJob:
    """Return a running job as its worker sees it."""
    return ClaimedJob(
        id=job.id,
        task=job.spec.task,
        queue=job.spec.queue,
        args=job.args,
        attempt=job.attempt,
        failures=job.failures,
        crashes=job.crashes,
        max_attempts=job.spec.max_attempts,
        timeout=job.spec.timeout,
        cancel_requested=job.cancel_requested,
        batch_id=job.batch_id,
        ordinal=job.ordinal,
        sort_at=job.sort_at,
        run_id=job.run_id,
        node=job.node,
        gated=gated,
        refused=refused,
    )
