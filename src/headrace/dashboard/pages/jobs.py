"""Jobs: a list with filters, and one job with all that is known of it, first of all why it is not running."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headrace.dashboard.asking import ROWS, choice, id_of, named, place, rows_of
from headrace.dashboard.batch_look import used_by
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.words import word
from headrace.engine.queries import explain_view, show_job
from headrace.model.attempt_log import AttemptLog
from headrace.model.calls import CallState, Purpose
from headrace.model.ids import parse_id
from headrace.model.job import JobState, JobView
from headrace.model.sentence import Sentence
from headrace.wiring.farm_explaining import with_farm

#: Calls of models that a job shows, the newest, and characters of what was logged.
MOST_CALLS, MOST_LOGGED = 50, 48 * 1024

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
    found = await inspect.list_jobs(before=place(view), limit=ROWS + 1, brief=True, **wanted)  # type: ignore[arg-type]
    return {"list": rows_of(view, found), "wanted": wanted, "states": list(JobState)}


async def job(view: View) -> Context:
    """Return all that is known of a job."""
    job_id = parse_id("job id", view.params["job_id"])
    stores = view.app.runtime.stores
    (found, attempts), logs, calls = await asyncio.gather(
        show_job(stores.inspect, job_id),
        stores.inspect.attempt_logs(job_id),
        stores.budgets.list_calls(job=job_id, limit=MOST_CALLS + 1),
    )
    return {
        "job": found, "attempts": attempts, "why": await _why(view, found), "logs": _shown(logs),
        "calls": calls[:MOST_CALLS], "more_calls": len(calls) > MOST_CALLS, "reused": used_by(found.usage).reused,
        "states_of_calls": CALL_STATES, "purposes": PURPOSES,
    }  # fmt: skip


def _shown(logs: Sequence[AttemptLog]) -> list[tuple[AttemptLog, str | None]]:
    """Return what was logged in each attempt as text, oldest first; None of older ones than a page has room for."""
    shown: list[tuple[AttemptLog, str | None]] = []
    room = MOST_LOGGED
    for log in reversed(logs):
        text = "\n".join(f"{line.at:%Y-%m-%d %H:%M:%S.%f} {line.level}: {line.message}" for line in log.lines)
        room -= len(text)
        shown.append((log, text if room >= 0 else None))
    return shown[::-1]


async def _why(view: View, found: JobView) -> Sentence | None:
    """Say why a job is not running; None of one that ended, or where the store does not say it."""
    if found.state.final:
        return None
    explained = await explain_view(view.app.runtime.stores, view.app.runtime.limiter, found)
    return None if explained is None else (await with_farm(view.app.settings, explained)).said


_FILTERS = frozenset({"state", "queue", "task", "batch", "cursor"})
PAGES = (
    Page("jobs", "/jobs", jobs, title="Jobs", query=_FILTERS, every=2.0),
    Page("job", "/jobs/{job_id}", job),
)
