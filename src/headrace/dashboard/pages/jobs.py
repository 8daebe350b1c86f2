"""Jobs: a list with filters, and one job with all that is known of it, first of all why it is not running."""

from __future__ import annotations

from headrace.dashboard.asking import ROWS, choice, id_of, named, place, rows_of
from headrace.dashboard.page import Context, Page, View
from headrace.engine.queries import explain_view, show_job
from headrace.model.ids import parse_id
from headrace.model.job import JobState, JobView
from headrace.wiring.farm_explaining import with_farm


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
    found, attempts = await show_job(view.app.runtime.stores.inspect, job_id)
    return {"job": found, "attempts": attempts, "why": await _why(view, found)}


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
