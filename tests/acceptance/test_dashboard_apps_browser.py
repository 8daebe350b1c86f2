"""Details, memory and reports in a real browser: their pages as all pages are, and every action that they offer."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from uuid import UUID

import pytest

from headrace import App
from headrace.apps.memory import means
from headrace.apps.report.opening import app as report_app
from headrace.dashboard.page import Page
from headrace.dashboard.pages import details, memory, reports
from tests.acceptance.dashboard_actions import do_all
from tests.acceptance.dashboard_walk import Walk
from tests.unit.browser import NEEDED, Tab
from tests.unit.listening import listening
from tests.unit.memory_world import ADA, USERS
from tests.unit.report_serving import reports_made, send
from tests.unit.test_dashboard_details import RULES
from tests.unit.test_dashboard_memory import EVIL, known, looked_at
from tests.unit.test_service_details import details_served, events_of, make

pytestmark = [pytest.mark.acceptance, NEEDED]
#: A folder for pictures of all pages, where somebody wants to look at them.
PICTURES = "TEST_PICTURES"
#: What is noted of an action that leads to another page.
LED = 200


async def walk(app: App, tab: Tab, pages: tuple[Page, ...], start: str) -> list[tuple[str, int]]:
    """Visit the pages of an application and do what they offer; return each action with its answer."""
    pictures = os.environ.get(PICTURES)
    async with listening(app) as base:
        walker = Walk(tab, base, pages, pictures=Path(pictures) if pictures else None)
        visits = await asyncio.to_thread(walker.run, start=[start])
        actions = await asyncio.to_thread(do_all, tab, base, pages, [visit.path for visit in visits])
    faults = [fault for one in (*visits, *actions) for fault in one.faults]
    assert not faults, "\n".join(faults)
    assert not walker.unseen
    return [(f"{action.verb} {action.kind[2]}", action.status) for action in actions]


@pytest.mark.slow
async def test_details(tab: Tab) -> None:
    """A batch is asked for on the page."""
    async with details_served(rules=RULES) as (client, desk):
        events_of(await client.get((await make(client)).json()["links"]["events"]))
        assert await walk(desk.app, tab, details.PAGES, "/details") == [("post /api/v1/details", LED)]


async def test_memory(tab: Tab, tmp_path: Path) -> None:
    """What is known of a user is flushed, taken up again where it failed, and forgotten."""
    async with looked_at(tmp_path) as (client, app):
        await known(client, "ada", [EVIL, "北京"])
        await client.post(f"{USERS}/ada/blobs", json={"messages": ADA})
        [flushed] = (await client.post(f"{USERS}/ada/flush", json={})).json()["flushes"]
        assert await means.TABLES.fail_flush(UUID(flushed["id"]), f"no answer: {EVIL}")
        actions = await walk(app, tab, memory.PAGES, "/memory?user=ada")
    assert {status for _, status in actions} <= {200, 202, 204}
    assert [action.rpartition("/")[2] for action, _ in actions] == ["flush", "retry", "ada"]


@pytest.mark.slow
async def test_reports(tab: Tab, tmp_path: Path) -> None:
    """One is made of a file that was sent."""
    async with reports_made(tmp_path) as (client, _):
        await send(client, "cases.csv")
        await client.post("/api/v1/reports", json={"file_ref": "file:cases.csv"})
        assert await walk(report_app, tab, reports.PAGES, "/reports") == [("post /api/v1/reports", LED)]
