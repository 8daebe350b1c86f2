"""Workers: who is alive, when each was heard of last, its slots and what runs in them."""

from __future__ import annotations

from headrace.dashboard.page import Context, Page, View
from headrace.engine.slot_exposition import slots_of
from headrace.engine.worker_queries import heartbeat_age, list_workers
from headrace.model.errors import NotFoundError
from headrace.model.ids import parse_id
from headrace.model.job import JobState
from headrace.model.session import SessionView

#: Rows of the list, and running jobs that are looked through for those of one worker.
MOST, LOOKED_AT = 100, 200


async def workers(view: View) -> Context:
    """Return the workers that are alive, or all that are known."""
    everyone = view.query.get("all", "") == "true"
    now, found = await list_workers(view.app.runtime.stores, everyone=everyone)
    now = now or view.now
    rows = [(session, heartbeat_age(session, now), slots_of(session)) for session in found[:MOST]]
    return {"now": now, "rows": rows, "everyone": everyone, "left_out": len(found) - MOST}


async def worker(view: View) -> Context:
    """Return one worker with the jobs that it runs."""
    session_id = parse_id("session", view.params["session"])
    inspect = view.app.runtime.stores.inspect
    now = (await inspect.store_info()).now or view.now
    found = next((one for one in await inspect.list_sessions() if one.id == session_id), None)
    if found is None:
        raise NotFoundError(f"there is no session {session_id}: it ended and was forgotten, or never was")
    running = await inspect.list_jobs(state=JobState.RUNNING, limit=LOOKED_AT + 1, brief=True)
    return {
        "now": now, "session": found, "heartbeat": heartbeat_age(found, now), "slots": slots_of(found),
        "looked_at": LOOKED_AT if len(running) > LOOKED_AT else 0,
        "running": [job for job in running if job.session == session_id], "figures": _figures(found),
    }  # fmt: skip


def _figures(session: SessionView) -> dict[str, float]:
    """Return the plain numbers that a worker told with its last heartbeat."""
    told = session.stats.items()
    return {name.removeprefix("headrace."): value for name, value in told if isinstance(value, int | float)}


PAGES = (
    Page("workers", "/workers", workers, title="Workers", group="System", query=frozenset({"all"})),
    Page("worker", "/workers/{session}", worker),
)
