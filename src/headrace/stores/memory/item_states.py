"""What the items of a batch are, and which of them failed."""

from __future__ import annotations

from heapq import nlargest
from uuid import UUID

from headrace.model.dead_letter import DeadLetter
from headrace.model.item_states import BatchStates, StateCells, check_range
from headrace.model.job import JobState, JobView
from headrace.stores.memory.batches import find_batch
from headrace.stores.memory.rows import Finished, Job
from headrace.stores.memory.state import State
from headrace.stores.memory.views import dead_letter, failed_at, job_view


def batch_states(state: State, batch_id: UUID, *, first: int, limit: int) -> BatchStates:
    """Return what the items are. Tries of an item end in their order, and at most the newest one lives."""
    check_range(first, limit)
    batch = find_batch(state, batch_id)
    cells = StateCells(first=first, limit=limit, end=batch.reach)
    for row in batch.ended:
        cells.note([row.job.ordinal or 0], row.state)
    for job in batch.live.values():
        cells.note([job.ordinal or 0], job.state)
    return cells.states


def item_jobs(state: State, batch_id: UUID, ordinal: int, *, limit: int) -> list[JobView]:
    """Return the newest tries of an item."""
    batch = state.batches.get(batch_id)
    rows: list[Job | Finished] = [] if batch is None else [*batch.ended, *batch.live.values()]
    tries = [job_view(row) for row in rows if (row.job if isinstance(row, Finished) else row).ordinal == ordinal]
    return nlargest(limit, tries, key=lambda job: (job.created_at, job.id))


def batch_dead_letters(state: State, batch_id: UUID, *, limit: int) -> list[DeadLetter]:
    """Return the newest items that failed and were not retried."""
    ended = find_batch(state, batch_id).ended
    dead = (row for row in ended if row.state is JobState.FAILED and row.job.id not in state.retries)
    return [dead_letter(row) for row in nlargest(limit, dead, key=failed_at)]
