"""Why a job is not running, by the predicate that admits jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

from headrace.model.admission import Explanation, WaitReason
from headrace.model.batch import BatchState
from headrace.model.job import JobState
from headrace.model.limits import Level
from headrace.stores.memory import claims
from headrace.stores.memory.caps import count_usage
from headrace.stores.memory.gate import Keeper
from headrace.stores.memory.lanes import lane_name
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State

#: Jobs before it that are counted.
MAX_AHEAD = 1_000


def explain_job(state: State, job_id: UUID, levels: Mapping[str, Level] | None) -> Explanation | None:
    """Return the one reason, or None for an unknown job."""
    if job_id in state.finished:
        return Explanation(job_id, state.finished[job_id].state, WaitReason.FINAL)
    job = state.jobs.get(job_id)
    if job is None:
        return None
    if job.state is not JobState.RUNNING and (paused := _batch_paused(state, job)):
        return paused
    if job.state is not JobState.READY:
        until = None if job.state is JobState.RUNNING else job.run_at
        return Explanation(job_id, job.state, WaitReason(job.state.value), job.parked_on, until)
    buckets = None if levels is None else state.limits.buckets.standing(levels, state.now())
    return next(_reasons(state, job, Keeper(state, count_usage(state), buckets=buckets)))


def _batch_paused(state: State, job: Job) -> Explanation | None:
    batch = None if job.batch_id is None else state.batches[job.batch_id]
    if batch is None or batch.paused_at is None:
        return None
    facts = {"paused_reason": batch.paused_reason}
    return Explanation(job.id, job.state, WaitReason.BATCH_PAUSED, str(job.batch_id), facts=facts)


def _reasons(state: State, job: Job, keeper: Keeper) -> Iterator[Explanation]:
    """Yield what keeps a ready job from running, in the order of `WaitReason`."""

    def because(reason: WaitReason, subject: str | None = None, **facts: Any) -> Explanation:
        return Explanation(job.id, job.state, reason, subject, facts=facts)

    queue = job.spec.queue
    if claims.paused(state, queue):
        yield because(WaitReason.PAUSED, queue, paused_reason=state.queues[queue].reason)
    if job.batch_id is not None and state.batches[job.batch_id].state is BatchState.CANCELLING:
        yield because(WaitReason.CANCELLING, str(job.batch_id))
    waiting = _waiting_beside(state, job)
    lane = [other for other in waiting if lane_name(other.spec) == lane_name(job.spec)]
    ahead = sum(1 for _ in islice((other for other in lane if _before(other, job)), MAX_AHEAD))
    if queue in state.limits.gated:
        # What holds up the first of its lane holds up the whole lane.
        first = min(lane, key=lambda other: (other.sort_at, other.id))
        for obstacle in keeper.obstacles(first):
            facts = {**obstacle.facts, "ahead": ahead}
            yield Explanation(job.id, job.state, obstacle.reason, obstacle.subject, obstacle.until, facts)
    if not _served(state, queue):
        yield because(WaitReason.NO_WORKER, queue, ahead=ahead)
    yield because(WaitReason.ORDER, ahead=ahead, others=len(lane) < len(waiting))


def _served(state: State, queue: str) -> bool:
    return any(state.alive(session) and queue in row.new.queues for session, row in state.sessions.items())


def _waiting_beside(state: State, job: Job) -> list[Job]:
    """Return the jobs that wait in the queue of a ready job, in all its lanes."""
    find = partial(claims.claimable, state)
    waiting = (find(other.id) for other in state.jobs.values() if other.spec.queue == job.spec.queue)
    return [other for other in waiting if other is not None]


def _before(other: Job, job: Job) -> bool:
    assert other.sort_at is not None
    assert job.sort_at is not None
    return (other.sort_at, other.id) < (job.sort_at, job.id)
