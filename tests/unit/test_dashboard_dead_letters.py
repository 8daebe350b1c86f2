"""The pages of dead letters and of schedules: what is told, and what their buttons do."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from headrace import App
from headrace.model.job import JobState
from headrace.model.schedule import FireRecord
from tests.unit.dashboard_calls import check_page, csrf_in, pages
from tests.unit.engine_app import until_final
from tests.unit.test_dashboard_jobs import EVIL, shop
from tests.waiting import wait_until


def sent_by(page: str, form: str) -> dict[str, Any]:
    """Return what a form sends besides what people write into it."""
    found = re.search(rf'id="{form}"[^>]*hx-vals="([^"]*)"', page)
    assert found is not None
    values: dict[str, Any] = json.loads(html.unescape(found[1]))
    return values


async def test_what_the_page_lists_is_what_its_button_runs_again() -> None:
    """With the filters of the page, and nothing else."""
    app = shop()
    async with pages(app, worker=True) as client:
        for text in ("a", "b", EVIL):
            job = (await client.post("/api/v1/jobs", json={"task": "fail", "args": [text]})).json()["job"]
            await until_final(app, app.job(job))
        page = (await client.get("/dead-letters")).text
        check_page(page)
        assert "<script>alert" not in page
        assert sent_by(page, "redrive-form") == {"all": True}
        group = re.search(r'href="/dead-letters\?fingerprint=([0-9a-f]+)"', page)
        assert group is not None
        page = (await client.get(f"/dead-letters?fingerprint={group[1]}")).text
        values = sent_by(page, "redrive-form")
        assert values == {"fingerprint": group[1]}
        browser = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page)}
        path = "/api/v1/dead-letters/redrive"
        told = (await client.post(path, json=values | {"dry_run": True}, headers=browser)).json()
        done = (await client.post(path, json=values, headers=browser)).json()
        assert told["count"] == done["redriven"] > 0


async def test_no_dead_letters() -> None:
    """It is told, and nothing is offered."""
    async with pages(shop()) as client:
        page = (await client.get("/dead-letters")).text
        check_page(page)
        assert "There are no dead letters." in page and "redrive-form" not in page
        assert (await client.get("/dead-letters?since=soon")).status_code == 422


async def test_schedules_are_fired_and_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the buttons of the page; the fire stands there with its job."""
    app = App("memory://")

    @app.cron("0 3 * * *", name="nightly")
    async def clean() -> None:
        """Clean nothing."""

    async with pages(app, worker=True) as client:

        async def listed() -> bool:
            return "nightly" in (await client.get("/schedules")).text

        await wait_until(listed)
        page = (await client.get("/schedules")).text
        check_page(page)
        assert "0 3 * * * UTC" in page
        browser = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page)}
        posts = re.findall(r'hx-post="([^"]*/schedules/[^"]*)"', page)
        assert posts == ["/api/v1/schedules/nightly/run-now", "/api/v1/schedules/nightly/pause"]
        for path in posts:
            assert (await client.post(path, json={}, headers=browser)).status_code in (200, 201)
        page = (await client.get("/schedules/nightly")).text
        check_page(page)
        job = re.search(r'href="/jobs/([0-9a-f-]{36})"', page)
        assert job is not None and "by hand" in page and "paused" in page
        assert (await until_final(app, app.job(job[1]))).state is JobState.SUCCEEDED
        assert (await client.get("/schedules/nobody")).status_code == 404
        schedules = app.runtime.stores.schedules
        assert schedules is not None
        read = schedules.list_fires

        async def forgotten_meanwhile(name: str, *, limit: int) -> list[FireRecord]:
            await schedules.forget_schedule(name)
            return await read(name, limit=limit)

        monkeypatch.setattr(schedules, "list_fires", forgotten_meanwhile)
        assert (await client.get("/schedules/nightly")).status_code == 200
