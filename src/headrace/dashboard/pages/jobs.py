"""Jobs: a list with filters, and one job with all that is known of it, first of all why it is not running."""

from __future__ import annotations

import asyncio

from headrace.dashboard.asking import ROWS, choice, id_of, named, place, rows_of
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.words import word
from headrace.engine.queries import explain_view, show_job
from headrace.model.calls import CallState, Purpose
from headrace.model.ids import parse_id
from headrace.model.job import JobState, JobView
from headrace.model.money import show_money
from headrace.model.usage import Usage
from headrace.wiring.farm_explaining import with_farm

#: Calls of models that a job shows, the newest.
MOST_CALLS = 50

CALL_STATES = {
    CallState.PREPARED: word("prepared"), CallState.SENT: word("sent"), CallState.RECEIVED: word("received"),
    CallState.SETTLED: word("settled"), CallState.ORPHANED: word("orphaned"),
}  # fmt: skip
PURPOSES = {
    Purpose.ASK: word("ask"), Purpose.REPAIR: word("repair"), Purpose.REASK: word("ask for items again"),
    Purpose.ESCALATE: word("another model"),
}  # fmt: skip


async def jobs(view: View) -> Context:
    """Return the newest jobs of those that are asked for."""
    wanted = {
        "state": choice(view, "state", JobState), "queue": named(view, "queue"), "task": named(view, "task"),
        "batch_id": id_of(view, "batch"),
    }  # fmt: skip
    inspect = view.app.runtime.stores.inspect
    found = await inspect.list_jobs(before=place(view), limit=ROWS + 1, **wanted)  # type: ignore[arg-type]
    return {"list": rows_of(view, found), "wanted": wanted, "states": list(JobState)}


async def job(view: View) -> Context:
    """Return all that is known of a job."""
    job_id = parse_id("job id", view.params["job_id"])
    stores = view.app.runtime.stores
    (found, attempts), calls = await asyncio.gather(
        show_job(stores.inspect, job_id), stores.budgets.list_calls(job=job_id, limit=MOST_CALLS + 1)
    )
    return {
        "job": found, "attempts": attempts, "why": await _why(view, found), "calls": calls[:MOST_CALLS],
        "more_calls": len(calls) > MOST_CALLS, "dollars": show_money, "states_of_calls": CALL_STATES, "purposes": PURPOSES, "reused": _reused(found),
    }  # fmt: skip


def _reused(job: JobView) -> int:
    """Return how many answers of a job that ended were used again, as its usage tells."""
    usage = job.usage if isinstance(job.usage, dict) else {}
    return Usage.from_json(usage).reused


async def _why(view: View, found: JobView) -> str | None:
    """Say why a job is not running; None of one that ended, or where the store does not say it."""
    if found.state.final:
        return None
    explained = await explain_view(view.app.runtime.stores, view.app.runtime.limiter, found)
    return None if explained is None else (await with_farm(view.app.settings, explained)).sentence


_FILTERS = frozenset({"state", "queue", "task", "batch", "cursor"})
PAGES = (
    Page("jobs", "/jobs", jobs, title="Jobs", query=_FILTERS, every=2.0),
    Page("job", "/jobs/{job_id}", job),
)
