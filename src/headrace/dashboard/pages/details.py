"""Details: batches of generated items, asked for on the page, and watched as the items arrive."""

from __future__ import annotations

import asyncio

from headrace.app import App
from headrace.apps.details.desk import Details, desk_of
from headrace.apps.details.kinds import KINDS
from headrace.apps.details.names import INTAKE_TASK
from headrace.apps.details.request import MOST_ITEMS, MOST_STYLE
from headrace.dashboard.asking import place, rows_of
from headrace.dashboard.page import Context, Page, View

#: Batches of a page: the feed of each is looked at.
ROWS = 20


def has_details(app: App) -> bool:
    """Whether an app makes details."""
    return desk_of(app) is not None


def _desk(view: View) -> Details:
    desk = desk_of(view.app)
    assert desk is not None
    return desk


async def details(view: View) -> Context:
    """Return the newest batches, and what a new one may be of."""
    desk = _desk(view)
    inspect = view.app.runtime.stores.inspect
    found = await inspect.list_jobs(task=INTAKE_TASK, before=place(view), limit=ROWS + 1)
    rows = rows_of(view, found, ROWS)
    outlines = await asyncio.gather(*(desk.outline(job) for job in rows.rows))
    return {
        "list": rows, "outlines": outlines, "kinds": sorted(KINDS), "most": MOST_ITEMS, "most_style": MOST_STYLE,
        "mode": "" if view.live else await desk.mode(),
    }  # fmt: skip


async def details_batch(view: View) -> Context:
    """Return one batch with the items that it has so far."""
    desk = _desk(view)
    batch = await desk.view(view.params["batch_id"])
    return {"batch": batch, "attention": await desk.attention() if batch["attention"] else []}


PAGES = (
    Page(
        "details", "/details", details, title="Details", group="Applications", query=frozenset({"cursor"}), every=2.0,
        belongs=has_details,
    ),
    Page("details_batch", "/details/{batch_id}", details_batch, every=0.5, belongs=has_details),
)  # fmt: skip
