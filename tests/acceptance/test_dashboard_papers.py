"""Papers in a real browser: the pages as all pages are, and values decided by keys alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from headrace.dashboard.pages.papers import PAGES
from tests.acceptance.command_runs import place
from tests.acceptance.dashboard_walk import Walk
from tests.unit.browser import NEEDED, Tab
from tests.unit.papers_world import BODY
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.acceptance, NEEDED]
WORLD = Path(__file__).with_name("dashboard_papers_world.py")
PICTURES = "TEST_PICTURES"
#: The field of the value that has the focus.
HERE = "document.activeElement.closest('[data-value]')?.id.slice(39)"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a dashboard of papers, all of which are extracted."""
    with place(tmp_path_factory.mktemp("served")) as here:
        url = here.start("serve", f"{WORLD}:app", "--worker", "--port", 0, "--json").line()["url"]
        with httpx2.Client(base_url=url, timeout=30) as client:
            task = client.post("/api/v1/papers", json=BODY).raise_for_status().json()["task_id"]
            wait_until_sync(
                lambda: client.get(f"/api/v1/papers/{task}/status").json()["status"] == "completed",
                timedelta(seconds=60),
            )
        yield url


def test_pages_of_papers(base: str, tab: Tab) -> None:
    """None complains, asks elsewhere, weighs too much, shuts anybody out, or is too wide."""
    pictures = os.environ.get(PICTURES)
    walk = Walk(tab, base, PAGES, pictures=Path(pictures) if pictures else None)
    faults = [fault for visit in walk.run(start=["/papers"]) for fault in visit.faults]
    for visit in walk.visits:
        print(f"{visit.page:16} {visit.first_byte:7.1f} ms {visit.weight:9,} bytes  {visit.path}")
    assert not faults, "\n".join(faults)
    assert not walk.unseen


def test_values_are_decided_by_keys(base: str, tab: Tab) -> None:
    """From value to value, accepted, corrected with a reason, chosen of two; a wrong value keeps its dialog open."""
    tab.size(1280, 900)
    tab.visit(f"{base}/papers")
    path = tab.ask("document.querySelector('main th a').getAttribute('href')")
    tab.visit(f"{base}{path}?name=b")
    seen = []
    for key in "jjk":
        tab.press(key)
        seen.append(tab.ask(HERE))
    assert seen == ["size", "country", "size"]
    tab.press("2")
    tab.wait_for("document.querySelector('.disputed').textContent.includes('accepted')")
    tab.wait_for(f"{HERE} === 'country'")
    tab.press("e")
    tab.wait_for("document.querySelector('#correct').open")
    tab.ask("document.querySelector('#correct [name=edited_value]').value = 'Peru'")
    tab.ask("document.querySelector('#correct [name=comment]').focus()")
    for key in "why":
        tab.press(key)
    tab.press("Enter")
    tab.wait_for("document.querySelector('[id$=-country]').textContent.includes('corrected')")
    told = tab.ask("document.querySelector('[id$=-country] .decision').textContent")
    assert "Peru" in told and "why" in told and tab.ask(HERE) == "blinded"
    assert tab.complaints == []
    tab.press("e")
    tab.wait_for("document.querySelector('#correct').open")
    tab.ask("document.querySelector('#correct [name=edited_value]').value = 'perhaps'")
    tab.press("Enter")
    tab.wait_for("document.querySelectorAll('.toast.bad').length === 1")
    assert "edited_value must be true or false" in tab.ask("document.querySelector('.toast.bad').textContent")
    assert tab.ask("document.querySelector('#correct').open")


def test_keys_that_lead_away_decide_nothing(base: str, tab: Tab) -> None:
    """`r` rejects a value, but not behind `g`, where it leads to the runs."""
    tab.visit(f"{base}/papers")
    path = tab.ask("document.querySelector('main th a').getAttribute('href')")
    tab.visit(f"{base}{path}?name=b")
    tab.press("j")
    tab.requests.clear()
    tab.press("g")
    tab.press("r")
    tab.wait_for("location.pathname === '/runs'")
    assert not [url for url in tab.requests if "/values/" in url]


def test_a_key_that_is_held_decides_one_value(base: str, tab: Tab) -> None:
    """The next one has the focus by then, and nobody has looked at it."""
    tab.visit(f"{base}/papers")
    path = tab.ask("document.querySelector('main th a').getAttribute('href')")
    tab.visit(f"{base}{path}?name=a")
    tab.press("j")
    first = tab.ask(HERE)
    tab.requests.clear()
    tab.press("r", held=15)
    tab.wait_for(f"{HERE} !== {first!r}")
    tab.press("r", held=15)
    tab.ask("new Promise((done) => setTimeout(done, 300))")
    assert len([url for url in tab.requests if "/values/" in url]) == 2
