"""What pages of batches ask: each question as seldom as its cost demands, however many people look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.dashboard.formats import line
from headrace.dashboard.page import View
from headrace.engine.batch_faults import BatchFaults, batch_faults
from headrace.engine.pace import Pace
from headrace.model.batch import BatchItem, BatchState, BatchView, Progress
from headrace.model.budget import BudgetView
from headrace.model.item_states import LETTERS, MOST_STATES, BatchStates
from headrace.model.job import JobError, JobState
from headrace.model.usage import Usage

#: Failures of a batch that are grouped, and groups that are shown.
FAILURES, FAULTS = 1_000, 20
#: Finished items of one part of the table.
RESULTS = 25
#: The longest time that is told of a batch.
LONGEST = timedelta(days=36_525)


def is_over(batch: BatchView) -> bool:
    """Whether nothing of a batch changes by itself any more."""
    return batch.state is BatchState.CLOSED


def _stage(batch: BatchView) -> tuple[Any, ...]:
    """Return what answers belong to: another round, or the end of one, has answers of its own."""
    return batch.id, batch.round, batch.state


async def states_of(view: View, batch: BatchView, first: int) -> BatchStates:
    """Return what the items of a part of the grid are."""

    async def ask() -> BatchStates:
        return await view.app.runtime.stores.inspect.batch_states(batch.id, first=first, limit=MOST_STATES)

    seconds = 3.0 if is_over(batch) else 0.2
    return await view.answer(("states", first, *_stage(batch)), ask, seconds=seconds, dear=True)


def counts_of(states: BatchStates) -> dict[JobState, int]:
    """Return how many of the items that were read are in each state."""
    counts = Counter(states.letters)
    return {state: counts[letter] for state, letter in LETTERS.items()}


async def progress_of(view: View, batch: BatchView, states: BatchStates) -> Progress:
    """Return how far a batch is: of one that was read whole it is counted here, of a larger one the store counts it."""
    if states.first or len(states.letters) < states.end:
        return await asked_progress(view, batch)
    counts = counts_of(states)
    waiting = counts[JobState.SCHEDULED] + counts[JobState.READY] + counts[JobState.PARKED]
    return Progress(
        batch.total, counts[JobState.SUCCEEDED], counts[JobState.FAILED], counts[JobState.CANCELLED],
        counts[JobState.RUNNING], waiting,
    )  # fmt: skip


async def asked_progress(view: View, batch: BatchView) -> Progress:
    """Return how far a batch is, as the store counts it."""

    async def ask() -> Progress:
        return await view.app.runtime.stores.inspect.batch_progress(batch.id)

    return await view.answer(progress_key(batch), ask, seconds=60.0 if is_over(batch) else 0.4, dear=True)


def progress_key(batch: BatchView) -> tuple[Any, ...]:
    """Return under what the progress of a batch is kept."""
    return ("progress", *_stage(batch))


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast items of a batch end."""

    #: items per second; None: nothing ended yet
    rate: float | None
    #: how long what is left takes at that rate; None: not known, or nothing is left
    left: timedelta | None
    #: whether the rate is of all the time since the batch was made, not of the last half minute
    average: bool


def speed_of(view: View, batch: BatchView, progress: Progress) -> Speed:
    """Return how fast a batch is, of what this process saw of it, or else over its whole time."""
    pace = view.memory.kept(("pace", batch.id), Pace)
    pace.note(view.now.timestamp(), progress.done)
    rate, average = (None if is_over(batch) else pace.rate), False
    if rate is None and batch.round == 1 and progress.done:
        took = ((batch.closed_at or view.now) - batch.created_at).total_seconds()
        rate, average = (progress.done / took if took > 0 else None), True
    waits = is_over(batch) or batch.paused_at is not None or progress.total is None
    left = None if rate is None or waits else _time_for((progress.total or 0) - progress.done, rate)
    return Speed(rate, left, average)


def _time_for(count: int, rate: float) -> timedelta:
    """Return how long so many take at a rate; beyond a hundred years nothing is told apart.

    >>> _time_for(10, 0.5), _time_for(10**9, 1e-9).days
    (datetime.timedelta(seconds=20), 36525)
    """
    return timedelta(seconds=min(count / rate, LONGEST.total_seconds()))


async def faults_of(view: View, batch: BatchView, failed: int) -> BatchFaults | None:
    """Return why items failed, by the newest failures; None: none did."""
    if not failed:
        return None

    async def ask() -> BatchFaults:
        return await batch_faults(view.app.runtime.stores.inspect, batch.id, limit=FAULTS, look=FAILURES)

    return await view.answer(("faults", *_stage(batch)), ask, seconds=2.0, dear=True)


async def spend_of(view: View, batch: BatchView) -> BudgetView | None:
    """Return what the model calls of a batch cost, beside its budget; None: it made none and has none."""

    async def ask() -> BudgetView:
        [found] = await view.app.runtime.stores.budgets.list_budgets([f"batch:{batch.id}"])
        return found

    found = await view.answer(("spend", *_stage(batch)), ask, seconds=1.0, dear=True)
    used = found.cost_nano or found.tokens or found.unpriced or found.reserved_nano or found.reserved_tokens
    return found if used or found.budget is not None else None


@dataclass(frozen=True, slots=True)
class Results:
    """A part of the finished items, in the order in which they ended."""

    rows: Sequence[Mapping[str, Any]]
    #: where the next part begins; empty: there is none yet
    next: str


async def results_of(view: View, batch: BatchView, cursor: str) -> Results:
    """Return finished items after a place, a line each. Raises InvalidInputError."""

    async def ask() -> Results:
        page = await view.app.runtime.stores.inspect.read_items(batch.id, cursor=cursor, limit=RESULTS)
        full = len(page.items) == RESULTS
        return Results([_row(item) for item in page.items], page.cursor if full else "")

    return await view.answer(("results", cursor, *_stage(batch)), ask, seconds=1.0, dear=True)


def _row(item: BatchItem) -> dict[str, Any]:
    """Return what a row shows: of a large result its beginning alone is kept."""
    return {
        "index": item.index, "status": item.status, "job_id": item.job_id, "retried": item.retried,
        "line": ending(item.status, item.result, item.error), "used": used_by(item.cost),
    }  # fmt: skip


def ending(state: JobState, result: Any, error: JobError | None) -> str:
    """Return what came of a job in one line.

    >>> ending(JobState.FAILED, None, JobError("ValueError", "no file"))
    'ValueError: no file'
    """
    if state is JobState.SUCCEEDED:
        return line(result)
    return "" if error is None else line(f"{error.kind}: {error.message}")


def used_by(stored: Any) -> Usage:
    """Return what the model calls of a job used, as it is stored; nothing of one that made none."""
    return Usage.from_json(stored if isinstance(stored, dict) else {})
