"""Claiming: the ready jobs of a queue in order, within the caps."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import partial
from uuid import UUID

from headrace.model.batch import BatchState
from headrace.model.job import Claim, ClaimedJob, JobState
from headrace.stores.memory.caps import Usage
from headrace.stores.memory.gate import Keeper
from headrace.stores.memory.lanes import lane_name
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State

Room = dict[str, int | None]


async def claim_jobs(state: State, claim: Claim) -> list[ClaimedJob]:
    """Start up to `claim.limit` jobs under the session and return them in claim order."""
    if not claim.limit_keys:
        return _claim(state, claim, {})
    # Lock, then count: of two claimers that count before they lock, both may take the last place under a cap.
    async with state.limit_locks.locked(claim.limit_keys, state.turn):
        room = _room(state, claim.limit_keys)
        await state.turn()
        return _claim(state, claim, room)


def _claim(state: State, claim: Claim, room: Room) -> list[ClaimedJob]:
    if not state.alive(claim.session) or paused(state, claim.queue) or claim.queue in state.limits.gated:
        return []
    claimed: list[ClaimedJob] = []
    while len(claimed) < claim.limit:
        lanes = [lane_name(), *(lane_name(None, key) for key, free in room.items() if free is None or free > 0)]
        job = state.ready.pop(claim.queue, lanes, partial(claimable, state), after=claim.after)
        if job is None:
            break
        if job.spec.limit_key is not None and (free := room[job.spec.limit_key]) is not None:
            room[job.spec.limit_key] = free - 1
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


def _room(state: State, limit_keys: tuple[str, ...]) -> Room:
    """Return how many more jobs may run under each key: its cap less what runs, None without a cap."""
    used = Counter(job.spec.limit_key for job in state.running.values())
    return {key: state.caps[key] - used[key] if key in state.caps else None for key in limit_keys}


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
        gated=gated,
        refused=refused,
    )
