"""What the items of a batch are: from rows of many ordinals each, which cost far less to send than a row per item."""

from __future__ import annotations

from uuid import UUID

from headrace.model.item_states import BatchStates, StateCells, check_range
from headrace.model.job import JobState
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.rounds import no_batch


async def batch_states(database: Database, batch_id: UUID, *, first: int, limit: int) -> BatchStates:
    """Do what `Inspect.batch_states` promises."""
    check_range(first, limit)
    rows = await database.fetch("batch_states", batch_id=batch_id, first=first, stop=first + limit)
    if not rows:
        raise no_batch(batch_id)
    head, *others = rows
    cells = StateCells(first=first, limit=limit, end=(head["ordinals"] or [0])[0])
    for row in others:
        ordinals = row["ordinals"] or ()
        if row["state"] == "slices":
            for begin, end in zip(ordinals[::2], ordinals[1::2], strict=True):
                cells.span(begin, end, JobState.READY)
        else:
            cells.note(ordinals, JobState(row["state"]))
    return cells.states
