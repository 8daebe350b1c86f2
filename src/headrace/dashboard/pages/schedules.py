"""Schedules: when each fires next and what came of its last fires; firing one now, pausing it."""

from __future__ import annotations

from headrace.dashboard.page import Context, Page, View
from headrace.engine import schedules as queries
from headrace.model.names import check_name

#: Schedules and fires that are shown.
MOST, FIRES = 200, 50


async def schedules(view: View) -> Context:
    """Return the schedules by name."""
    stores = view.app.runtime.stores
    found = [] if stores.schedules is None else await queries.list_schedules(stores)
    return {"schedules": found[:MOST], "left_out": len(found) - MOST, "kept": stores.schedules is not None}


async def schedule(view: View) -> Context:
    """Return one schedule with its last fires."""
    stores, name = view.app.runtime.stores, check_name("schedule", view.params["name"])
    facts, fires = await queries.show_schedule(stores, name, fires=FIRES)
    return {"facts": facts, "fires": fires}


PAGES = (
    Page("schedules", "/schedules", schedules, title="Schedules", group="System", every=2.0),
    Page("schedule", "/schedules/{name}", schedule, every=2.0),
)
