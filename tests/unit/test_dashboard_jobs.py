"""The pages of jobs: what is told of each, in every state, whatever users wrote."""

from __future__ import annotations

import html
import re

import pytest

from headrace import App, Backoff
from headrace.model.api_token import Scope
from headrace.service.access import Access
from tests.unit.dashboard_calls import check_page, csrf_in, pages, token_for
from tests.unit.engine_app import until_final

EVIL = "<script>alert(1)</script>\"'&amp;\u202eabc"
LONG = "x<b>" * 25_000
GATED = Access(required=True)


def shop() -> App:
    """Return an app with tasks that take anything and end in each way."""
    app = App("memory://")

    @app.task
    async def echo(text: str) -> str:
        return text

    @app.task(retry=Backoff.none())
    async def fail(text: str) -> str:
        raise ValueError(text)

    return app


async def test_a_job_that_waits_says_why_and_can_be_cancelled() -> None:
    """The sentence of `explain`, and the one thing that can be done to it."""
    app = shop()
    async with pages(app) as client:
        job = (await client.post("/api/v1/jobs", json={"task": "echo", "args": ["hello"]})).json()["job"]
        page = (await client.get(f"/jobs/{job}")).text
        check_page(page)
        why = (await client.get(f"/api/v1/jobs/{job}/explain", headers={"accept": "*/*"})).json()["sentence"]
        assert html.escape(why, quote=False) in page and "no live worker" in why
        assert f'hx-post="/api/v1/jobs/{job}/cancel"' in page and "data-confirm" in page and "data-live" in page
        csrf = csrf_in(page)
        browser = {"origin": "http://localhost:8400", "x-csrf-token": csrf}
        assert (await client.post(f"/api/v1/jobs/{job}/cancel", json={}, headers=browser)).status_code == 200
        page = (await client.get(f"/jobs/{job}")).text
        assert "s-cancelled" in page and f'hx-post="/api/v1/jobs/{job}/retry"' in page
        assert "data-live" not in page, "what has ended is not followed"


@pytest.mark.parametrize("task", ["echo", "fail"])
@pytest.mark.parametrize("text", [EVIL, LONG])
async def test_what_users_wrote_stays_text(task: str, text: str) -> None:
    """As argument, result, error and trace: escaped, in its own direction, and bounded."""
    app = shop()
    async with pages(app, worker=True) as client:
        job = (await client.post("/api/v1/jobs", json={"task": task, "args": [text]})).json()["job"]
        await until_final(app, app.job(job))
        for path in (f"/jobs/{job}", "/jobs", "/"):
            page = (await client.get(path)).text
            check_page(page)
            assert len(page.encode()) < 150_000, path
            assert "<script>alert" not in page and "x<b>" not in page
        page = (await client.get(f"/jobs/{job}")).text
        shown = html.unescape(re.sub(r"<[^>]*>", "", page))
        assert text[:100] in shown.replace('\\"', '"')
        assert text != LONG or "characters" in page


async def test_filters() -> None:
    """Each narrows the list; what is no state, name or id is told by its field."""
    app = shop()
    async with pages(app, worker=True) as client:
        for task in ("echo", "fail"):
            job = (await client.post("/api/v1/jobs", json={"task": task, "args": ["a"]})).json()["job"]
            await until_final(app, app.job(job))
        assert (await client.get("/jobs?state=failed")).text.count('<bdi class="text">fail') == 1
        assert '<bdi class="text">echo' not in (await client.get("/jobs?state=failed&task=fail&queue=default")).text
        assert "No job is like that." in (await client.get("/jobs?state=parked")).text
        for query in ("state=odd", "queue=a/b", "batch=1", "cursor=x", "page=2"):
            answer = await client.get(f"/jobs?{query}")
            assert answer.status_code == 422 and query.split("=")[0] in answer.text, query
        assert (await client.get("/jobs/0198")).status_code == 422
        assert (await client.get("/jobs/01980000-0000-7000-8000-000000000000")).status_code == 404


async def test_long_lists_have_pages() -> None:
    """Each job stands on one of them."""
    app = shop()
    async with pages(app) as client:
        await client.post("/api/v1/batches", json={"task": "echo", "items": [str(number) for number in range(120)]})
        seen, path = list[str](), "/jobs"
        while path:
            page = (await client.get(path)).text
            seen += re.findall(r'<a href="/jobs/([0-9a-f-]{36})">', page)
            found = re.search(r'<a href="([^"]*)" rel="next">', page)
            path = html.unescape(found[1]) if found else ""
        assert len(seen) == len(set(seen)) == 120


async def test_actions_by_rights() -> None:
    """Whoever may only look sees no button."""
    app = shop()
    async with pages(app, GATED) as client:
        operator = {"authorization": f"Bearer {await token_for(app, Scope.READ, Scope.SUBMIT, Scope.OPERATE)}"}
        submitter = {"authorization": f"Bearer {await token_for(app, Scope.SUBMIT)}"}
        job = (await client.post("/api/v1/jobs", json={"task": "echo", "args": ["a"]}, headers=submitter)).json()["job"]
        reader = {"authorization": f"Bearer {await token_for(app, Scope.READ)}"}
        assert "/cancel" in (await client.get(f"/jobs/{job}", headers=operator)).text
        assert "/cancel" not in (await client.get(f"/jobs/{job}", headers=reader)).text
