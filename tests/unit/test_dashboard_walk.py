"""A walk over all pages of a dashboard without a browser: links lead somewhere, buttons ask what there is."""

from __future__ import annotations

import asyncio
import html
import re
import runpy
from pathlib import Path

import httpx2
import pytest

import headrace.dashboard
from headrace import App
from headrace.dashboard.page import Page
from headrace.dashboard.table import PAGES, pages_of
from headrace.service.application import make_service
from headrace.service.permits import Permits
from tests.acceptance.dashboard_fill import fill
from tests.unit.dashboard_calls import check_page
from tests.unit.test_service_following import listening

WORLD = Path(__file__).resolve().parents[1] / "acceptance" / "dashboard_world.py"
TEMPLATES = Path(headrace.dashboard.__file__).parent / "templates"
#: Pages of one kind that are looked at.
MOST = 6
_ACTION = re.compile(r'hx-(post|put|patch|delete)="([^"]*)"')


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> App:
    """The app in which something of everything happens, on the memory store."""
    monkeypatch.setenv("HEADRACE_URL", "memory://")
    monkeypatch.setenv("HEADRACE_WORKER_SHUTDOWN_GRACE", "0s")
    made: App = runpy.run_path(str(WORLD))["app"]
    return made


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_page(app: App, language: str) -> None:
    """Each has what all pages keep, weighs little, shows what users wrote as text, and offers only what there is."""
    permits = Permits.of(make_service(app))
    async with listening(app) as (base, _):
        with httpx2.Client(base_url=base, timeout=30) as filling:
            await asyncio.to_thread(fill, filling)
        headers = {"accept": "text/html", "accept-language": language}
        async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=30) as client:
            seen, waiting, counts = {"/"}, ["/"], dict.fromkeys((page.path for page in pages_of(app)), 0)
            while waiting:
                path = waiting.pop(0)
                permit = permits.find("GET", path.partition("?")[0])
                assert permit is not None, f"a link leads to {path}, and nothing is there"
                if counts.get(permit.path, MOST) >= MOST:
                    continue
                counts[permit.path] += 1
                answer = await client.get(path)
                assert answer.status_code == 200, (path, answer.text[-500:])
                page = answer.text
                check_page(page)
                assert len(page.encode()) <= 150_000, (path, len(page.encode()))
                assert "<script>alert" not in page and "<img src=x" not in page and "<b>text" not in page, path
                for method, target in _ACTION.findall(page):
                    bare = html.unescape(target).partition("?")[0]
                    found = permits.find(method.upper(), bare)
                    assert found is not None and not found.path.startswith("/{"), f"{path} offers {method} {bare}"
                for link in re.findall(r'<a [^>]*href="(/[^"]*)"', page):
                    link = html.unescape(link)
                    if link not in seen and not link.startswith("/api/"):
                        seen.add(link)
                        waiting.append(link)
    unseen = {path for path, count in counts.items() if not count}
    assert not unseen, f"no link leads to {unseen}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_has_its_template(page: Page) -> None:
    """By its name, and what is live has a place in it."""
    source = (TEMPLATES / f"{page.template or page.name}.html").read_text(encoding="utf-8")
    blocks = set(re.findall(r"{% block (live_\w+) %}", source))
    assert blocks == set(re.findall(r'data-part="(live_\w+)"', source))
