"""Batches: the list of them, one with a cell for each of its items, and one item with its tries."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from headrace.dashboard import batch_look
from headrace.dashboard.asking import id_of, place, rows_of
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.words import word
from headrace.model.batch import BatchOutcome, BatchView, Progress
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.model.ids import parse_id
from headrace.model.item_states import LETTERS, MOST_FIRST, MOST_STATES
from headrace.model.job import JobState

#: Rows of the list; batches of them whose items are counted for one look, and how large such a batch may be.
ROWS, COUNTED, MOST_COUNTED = 25, 10, 10_000
#: Tries of an item that are shown.
TRIES = 20
#: What batches are called beside the states of jobs: as these names they stand on the pages.
STATES = (
    word("open"), word("sealed"), word("cancelling"), word("abandoned"), word("closed"), word("partial"),
    word("succeeded"), word("failed"), word("cancelled"),
)  # fmt: skip
#: The cells of the grid: rectangles (x, y, width, height) in a square of 20, so that no state is told by colour alone.
SHAPES: dict[JobState, tuple[tuple[int, int, int, int], ...]] = {
    JobState.SCHEDULED: ((0, 13, 20, 7),),
    JobState.READY: ((5, 5, 10, 10),),
    JobState.RUNNING: ((0, 0, 20, 5), (0, 15, 20, 5), (0, 5, 5, 10), (15, 5, 5, 10)),
    JobState.PARKED: ((1, 0, 7, 20), (12, 0, 7, 20)),
    JobState.SUCCEEDED: ((0, 0, 20, 20),),
    JobState.FAILED: ((0, 0, 10, 20), (10, 10, 10, 10)),
    JobState.CANCELLED: ((0, 7, 20, 6),),
}


async def batches(view: View) -> Context:
    """Return batches, the newest first, or the one that is asked for, each with how far it is where that is known."""
    wanted = id_of(view, "id")
    inspect = view.app.runtime.stores.inspect
    if wanted is None:
        found = await inspect.list_batches(before=place(view), limit=ROWS + 1)
    else:
        one = await inspect.get_batch(wanted)
        found = [] if one is None else [one]
    rows = rows_of(view, found, ROWS)
    return {"list": rows, "wanted": wanted, "counted": await _counted(view, rows.rows)}


async def _counted(view: View, rows: Sequence[BatchView]) -> dict[Any, Progress]:
    """Return how far batches are, by id: what is known, and of a few more what the store counts.

    Those that were never counted come first, then those whose count is oldest; the next look counts others.
    """
    known = {batch.id: _known(view, batch) for batch in rows}
    countable = [
        batch
        for batch in rows
        if batch.total is not None
        and batch.total <= MOST_COUNTED
        and not (batch_look.is_over(batch) and known[batch.id])
    ]
    countable.sort(key=lambda batch: view.memory.due(batch_look.progress_key(batch)))
    fresh = await asyncio.gather(*(batch_look.asked_progress(view, batch) for batch in countable[:COUNTED]))
    counted = {batch.id: progress for batch, progress in zip(countable, fresh, strict=False)}
    return {batch_id: progress for batch_id, progress in (known | counted).items() if progress is not None}


def _known(view: View, batch: BatchView) -> Progress | None:
    """Return how far a batch is as far as nobody has to be asked."""
    if batch.outcome is BatchOutcome.SUCCEEDED and batch.total is not None:
        return Progress(batch.total, succeeded=batch.total)
    known: Progress | None = view.memory.last(batch_look.progress_key(batch))
    return known


async def _find(view: View) -> BatchView:
    """Return the batch of the address. Raises InvalidInputError, NotFoundError."""
    batch_id = parse_id("batch id", view.params["batch_id"])
    batch = await view.app.runtime.stores.inspect.get_batch(batch_id)
    if batch is None:
        raise NotFoundError(f"no batch {batch_id}; `headrace batch list` shows those there are")
    return batch


def _whole(field: str, text: str) -> int:
    """Return a place among items. Raises InvalidInputError."""
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) > MOST_FIRST:
        raise InvalidInputError(field, f"must be a whole number from 0 to {MOST_FIRST:,}", text)
    return int(text)


def _first(view: View) -> int:
    return _whole("first", view.query.get("first", "0"))


async def batch(view: View) -> Context:
    """Return one batch: what each item is, why some failed, what came of others, how fast it is and what it costs."""
    found, first = await _find(view), _first(view)
    states, spend, results = await asyncio.gather(
        batch_look.states_of(view, found, first),
        batch_look.spend_of(view, found),
        batch_look.results_of(view, found, view.query.get("cursor", "")),
    )
    progress = await batch_look.progress_of(view, found, states)
    return {
        "batch": found, "progress": progress, "over": batch_look.is_over(found),
        "states": states, "counts": batch_look.counts_of(states), "letters": LETTERS, "shapes": SHAPES,
        "part": {"first": first, "before": max(first - MOST_STATES, 0), "next": first + MOST_STATES},
        "speed": batch_look.speed_of(view, found, progress), "spend": spend,
        "faults": await batch_look.faults_of(view, found, progress.failed),
        "results": results, "later": "cursor" in view.query,
    }  # fmt: skip


async def item(view: View) -> Context:
    """Return one item of a batch with its tries, the newest first."""
    found, ordinal = await _find(view), _whole("item", view.params["ordinal"])
    tries = await view.app.runtime.stores.inspect.item_jobs(found.id, ordinal, limit=TRIES + 1)
    if not tries:
        raise NotFoundError(f"batch {found.id} has no item {ordinal:,}, or not any more")
    lines = [batch_look.ending(job.state, job.result, job.error) for job in tries[:TRIES]]
    return {"batch": found, "ordinal": ordinal, "tries": tries[:TRIES], "lines": lines, "more": len(tries) > TRIES}


PAGES = (
    Page("batches", "/batches", batches, title="Batches", query=frozenset({"id", "cursor"}), every=2.0),
    Page(
        "batch", "/batches/{batch_id}", batch, query=frozenset({"first", "cursor"}), every=0.5,
        texts={"grid": lambda context: context["states"].letters},
    ),
    Page("batch_item", "/batches/{batch_id}/items/{ordinal}", item),
)  # fmt: skip
