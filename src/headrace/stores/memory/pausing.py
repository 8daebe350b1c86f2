"""Paused batches: their ready jobs are held, parked on what no signal wakes, and let go at their old places."""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice
from uuid import UUID

from headrace.model.batch import MAX_SETTLE_SLICES, BatchState, held_by
from headrace.model.errors import ConflictError
from headrace.model.job import JobState
from headrace.stores.memory.batches import find_batch
from headrace.stores.memory.lanes import lane_name
from headrace.stores.memory.rows import Batch
from headrace.stores.memory.state import State


def pause_batch(state: State, batch_id: UUID, reason: str | None) -> None:
    """Mark a batch paused; a second time only the reason changes."""
    batch = find_batch(state, batch_id)
    if batch.state in (BatchState.CLOSED, BatchState.CANCELLING):
        raise ConflictError(f"The batch is {batch.state}: nothing of it is left to start, so it cannot be paused.")
    batch.paused_at, batch.paused_reason = batch.paused_at or state.now(), reason


def end_pause(batch: Batch) -> None:
    """Mark a batch paused no more."""
    batch.paused_at = batch.paused_reason = None


def settle(state: State, batch: Batch, limit: int) -> int:
    """Hold ready jobs of a paused batch, or let go of held ones of one that is not; return how many."""
    if batch.state is BatchState.CANCELLING:
        return 0
    return _let_go(state, batch, limit) if batch.paused_at is None else _hold(state, batch, limit)


def _hold(state: State, batch: Batch, limit: int) -> int:
    ready = list(islice((job for job in batch.live.values() if job.state is JobState.READY), limit))
    for job in ready:
        state.hold(job)
    for name in {lane_name(job.spec) for job in ready}:
        state.ready.drop(batch.new.spec.queue, name, {job.id for job in ready})
    return len(ready)


def _let_go(state: State, batch: Batch, limit: int) -> int:
    held = state.parked.waiting.get(held_by(batch.new.id), {}).values()
    first = nsmallest(limit, held, key=lambda job: (job.sort_at, job.id))
    for job in first:
        assert job.sort_at is not None
        state.make_ready(job, sort_at=job.sort_at)
    return len(first)


def sweep(state: State, limit: int) -> None:
    """Finish pauses and resumes whose caller died in the middle."""
    for batch in list(state.batches.values()):
        settle(state, batch, limit * MAX_SETTLE_SLICES)
