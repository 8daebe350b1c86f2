"""Closing, cancelling and abandoning batches: what their jobs have become decides, never a counter kept on the side."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from uuid import UUID

from headrace.model.batch import (
    MAX_SETTLE_SLICES,
    SETTLE_ITEMS,
    BatchOutcome,
    BatchState,
    ClosedBatch,
    Progress,
    callback_args,
    closing_facts,
)
from headrace.model.job import JobState, NewJob
from headrace.stores.memory.batches import find_batch
from headrace.stores.memory.intake import insert_job
from headrace.stores.memory.pausing import end_pause
from headrace.stores.memory.rows import Batch
from headrace.stores.memory.state import State

UNSTARTED = (JobState.READY, JobState.SCHEDULED, JobState.PARKED)


def close_batches(state: State, batches: Iterable[Batch]) -> list[ClosedBatch]:
    """Close what is done, in order of ids; then settle those that broke their policy, and close what is done then."""
    ordered = sorted(batches, key=lambda batch: batch.new.id)
    stopped = [batch for batch in ordered if batch.state is BatchState.SEALED and batch.live and _exceeded(batch)]
    closed = [_close(state, batch) for batch in ordered if _done(batch)]
    for batch in stopped:
        batch.state = BatchState.CANCELLING
        end_pause(batch)
        settle(state, batch, SETTLE_ITEMS * MAX_SETTLE_SLICES)
    return closed + [_close(state, batch) for batch in stopped if _done(batch)]


def _done(batch: Batch) -> bool:
    return batch.state in (BatchState.SEALED, BatchState.CANCELLING) and not batch.live


def _exceeded(batch: Batch) -> bool:
    allowed = batch.new.policy.max_failed
    return allowed is not None and batch.counts[JobState.FAILED] > allowed


def _close(state: State, batch: Batch) -> ClosedBatch:
    batch.outcome = _outcome(batch)
    batch.state, batch.closed_at = BatchState.CLOSED, state.now()
    callback = batch.new.on_close
    if callback is not None:
        succeeded, failed, cancelled = _endings(batch)
        counts = Progress(batch.total, succeeded=succeeded, failed=failed, cancelled=cancelled)
        facts = closing_facts(round=batch.round, outcome=batch.outcome, counts=counts, closed_at=batch.closed_at)
        insert_job(state, NewJob(callback, callback_args(batch.new.id, batch.new.on_close_more, facts)))
    return ClosedBatch(batch.new.id, batch.outcome, callback.queue if callback is not None else None)


def _outcome(batch: Batch) -> BatchOutcome:
    succeeded, failed, cancelled = _endings(batch)
    if _exceeded(batch):
        return BatchOutcome.FAILED
    if batch.state is BatchState.CANCELLING:
        return BatchOutcome.CANCELLED
    if not failed and not cancelled:
        return BatchOutcome.SUCCEEDED
    return BatchOutcome.PARTIAL if succeeded else BatchOutcome.FAILED


def _endings(batch: Batch) -> tuple[int, int, int]:
    """Return how many items succeeded, failed, and were cancelled."""
    counts = batch.counts
    return counts[JobState.SUCCEEDED], counts[JobState.FAILED], counts[JobState.CANCELLED]


def cancel_batch(state: State, batch_id: UUID) -> None:
    """Start cancelling; what was appended so far becomes the total."""
    batch = find_batch(state, batch_id)
    if batch.state is not BatchState.CLOSED:
        batch.state, batch.total = BatchState.CANCELLING, batch.appended
        end_pause(batch)


def settle(state: State, batch: Batch, limit: int) -> int:
    """Cancel up to `limit` unstarted jobs of a batch being cancelled, and ask its running ones to stop."""
    if batch.state is not BatchState.CANCELLING:
        return 0
    for job in batch.live.values():
        job.cancel_requested = job.cancel_requested or job.state is JobState.RUNNING
    unstarted = list(islice((job for job in batch.live.values() if job.state in UNSTARTED), limit))
    for job in unstarted:
        state.finish(job, JobState.CANCELLED)
    return len(unstarted)


def sweep_batches(state: State, *, seal_timeout: timedelta, limit: int) -> list[ClosedBatch]:
    """Close what is done, settle up to 20 times `limit` jobs of each batch being cancelled, abandon what is idle."""
    unclosed = [batch for batch in state.batches.values() if batch.state is not BatchState.CLOSED]
    closed = close_batches(state, unclosed)
    for batch in unclosed:
        settle(state, batch, limit * MAX_SETTLE_SLICES)
    idle_since = state.now() - seal_timeout
    for batch in unclosed:
        if batch.state is BatchState.OPEN and batch.touched_at <= idle_since:
            batch.state = BatchState.ABANDONED
    return closed + close_batches(state, (batch for batch in unclosed if batch.state is BatchState.CANCELLING))
