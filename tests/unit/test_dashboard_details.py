"""The pages of details: asked for on the page, watched as the items arrive, and gone where an app makes none."""

from __future__ import annotations

import html
import re

import pytest

from headrace.apps.details.mode import NORMAL
from headrace.apps.details.request import MOST_STYLE
from headrace.dashboard.page import View
from headrace.dashboard.pages.details import details
from headrace.testing.provider import Answers
from tests.unit.dashboard_calls import PAGE, check_page, pages
from tests.unit.test_dashboard_jobs import shop
from tests.unit.test_service_details import details_served, events_of

EVIL = "<script>alert(1)</script>"
RULES = Answers([
    {"contains": "You invent details", "list": {
        "count": "Count: (\\d+)", "about": "\\nRequest ([^\\n]+)",
        "item": {"name": "{name} of {words:1}", "description": EVIL + " {words:3}", "attributes": {"a": "{number:9}"}},
    }},
])  # fmt: skip


async def test_items_are_asked_for_and_shown_as_text() -> None:
    """The form leads to the page of the batch, which lists each item once it came; the list has the batch."""
    async with details_served(rules=RULES) as (client, _):
        page = (await client.get("/details", headers=PAGE)).text
        check_page(page)
        assert "Nothing was asked for yet." in page
        form = re.search(r'<form [^>]*hx-post="([^"]*)"[^>]*data-goto="([^"]*)"', page)
        assert form is not None
        answer = await client.post(form[1], json={"type": "skill", "count": 3, "style": EVIL})
        batch = answer.json()["batch_id"]
        events = events_of(await client.get(answer.json()["links"]["events"]))
        page = (await client.get(html.unescape(form[2]).replace("{id}", batch), headers=PAGE)).text
        check_page(page)
        assert EVIL not in page and html.escape(EVIL) in page
        assert "data-live" not in page, "what has ended is not followed"
        names = [data["name"] for _, kind, data in events if kind == "item"]
        assert len(names) == 3 and all(html.escape(name, quote=False) in page for name in names)
        page = (await client.get("/details", headers=PAGE)).text
        check_page(page)
        assert batch in page and "completed" in page and f'maxlength="{MOST_STYLE}"' in page


async def test_of_many_items_the_newest_are_shown() -> None:
    """And how many came before them."""
    async with details_served(rules=RULES) as (client, _):
        answer = (await client.post("/api/v1/details", json={"type": "skill", "count": 105})).json()
        events_of(await client.get(answer["links"]["events"]))
        page = (await client.get(f"/details/{answer['batch_id']}", headers=PAGE)).text
        numbers = [int(number) for number in re.findall(r'<td class="num">(\d+)</td>', page)]
        assert numbers == list(range(6, 106)) and "5 more are not shown." in page


async def test_how_batches_are_made_is_read_for_the_page_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is live."""
    async with details_served(worker=False) as (_, desk):
        assert (await details(View(desk.app)))["mode"] == NORMAL
        monkeypatch.delattr("headrace.apps.details.desk.read_mode")
        assert (await details(View(desk.app, live=True)))["list"].rows == []


async def test_an_app_without_details_has_no_such_page() -> None:
    """Neither a link nor an address."""
    async with pages(shop()) as client:
        assert "/details" not in (await client.get("/")).text
        assert (await client.get("/details")).status_code == 404
