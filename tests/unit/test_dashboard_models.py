"""The page of models, and what a job's page tells of its calls and of what it logged."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx2

from headrace import App, Context, __version__
from headrace.model.api_token import Scope
from headrace.model.calls import CallState
from headrace.model.quota import PoolLimits
from headrace.service.access import Access
from tests.unit.dashboard_calls import check_page, csrf_in, pages, token_for
from tests.unit.engine_app import until_final
from tests.unit.llm_answers import WrittenProvider, llm_of
from tests.unit.test_dashboard_jobs import EVIL, shop
from tests.unit.test_service_models import JOB, fill
from tests.waiting import wait_until

SCRIPT = "<script>alert(1)</script>"


async def browser(client: httpx2.AsyncClient, path: str) -> dict[str, str]:
    """Return the headers with which a page of this service writes."""
    return {"origin": "http://localhost:8400", "x-csrf-token": csrf_in((await client.get(path)).text)}


async def test_nothing_was_called_yet() -> None:
    """The page says so, in English and in Chinese."""
    async with pages(App("memory://")) as client:
        page = (await client.get("/models")).text
        check_page(page)
        assert "no model call is on record" in page and "No budget is set." in page
        page = (await client.get("/models", headers={"accept-language": "zh"})).text
        check_page(page)
        assert "没有设置预算" in page


async def test_spending_in_each_group_and_orphaned_calls() -> None:
    """What was paid, and what calls of a dead process may have cost, which a look at the page does not end."""
    app = App("memory://")
    async with pages(app) as client:
        _, lost = await fill(app)
        page = (await client.get("/models")).text
        states = {call.id: call.state for call in await app.runtime.stores.budgets.list_calls()}
        assert states[lost.id] is CallState.SENT, "a look ended a call"
        assert "There are none." in page
        await app.runtime.stores.calls.reap_calls(limit=10)
        for by, name in (("model", "openai/small"), ("pool", "openai:main:small"), ("tenant", "acme"), ("day", "20")):
            page = (await client.get("/models", params={"by": by, "since": "30d"})).text
            check_page(page)
            assert name in page and "$2.50" in page and "≤ $0.000005" in page
        assert "There are none." not in page
        assert (await client.get("/models?by=week")).status_code == 422
        assert (await client.get("/models?since=x")).status_code == 422
        assert (await client.get("/models?since=all&by=batch")).status_code == 200


async def test_a_pool_shows_its_quota_and_what_was_saved() -> None:
    """What is used per minute is known from the second look on; answers that were used again are money saved."""
    app = App("memory://")
    async with pages(app) as client:
        stores = app.runtime.stores
        llm = llm_of(WrittenProvider(["yes"]), stores, limits=PoolLimits(requests_per_minute=600))
        await llm.complete(EVIL)
        [session] = await stores.inspect.list_sessions()
        told: dict[str, Any] = {
            "name": "written:written-1", "used": {"requests": 1.0}, "reserved": 0, "waits": 4, "waited_seconds": 2.0,
            "waiting": 3, "in_flight": 0, "refused": 7, "overloaded": 0, "closed_seconds": 30.0, "probing": False,
            "flows": {"requests": 10.0}, "learnt": 0.5,
        }  # fmt: skip
        stats = {"headrace.llm.pools": [told], "headrace.llm.memo_hits": 2, "headrace.llm.saved_nano": 3_000_000_000}
        await stores.sessions.renew_session(session.id, lease=timedelta(minutes=1), stats=stats)
        page = (await client.get("/models")).text
        check_page(page)
        assert "closed for 30 s" in page and "– / 600 requests per minute" in page and "slowed to 50 %" in page
        assert "$3.00" in page and ">500 ms<" in page and ">7<" in page
        stats["headrace.llm.pools"] = [told | {"used": {"pace": 1.0}, "flows": {"pace": 0.5}}]
        await stores.sessions.renew_session(session.id, lease=timedelta(minutes=1), stats=stats)
        page = (await client.get("/models")).text
        assert "– / 30 calls per minute, as was learnt" in page and "slowed" not in page


async def test_a_budget_is_set_changed_and_removed() -> None:
    """By the address that the form and the button have; whoever may not operate sees neither."""
    app = App("memory://")
    async with pages(app) as client:
        page = (await client.get("/models")).text
        form = re.search(r'hx-put="([^"]*budgets[^"]*)"', page)
        assert form is not None
        path = form[1].replace("%7Bscope%7D", "tenant%3Aa%2Fb")
        answer = await client.put(path, json={"dollars": "12345.675"}, headers=await browser(client, "/models"))
        assert answer.status_code == 200, answer.text
        page = (await client.get("/models")).text
        check_page(page)
        given = re.search(r'data-given="([^"]*tenant[^"]*)"', page)
        assert given is not None and '"dollars": "12345.675"' in html.unescape(given[1])
        assert "of $12,345.68" in page
        button = re.search(r'hx-delete="([^"]*)"', page)
        assert button is not None and "data-confirm" in page
        headers = await browser(client, "/models") | {"content-type": "application/json"}
        assert (await client.delete(button[1], headers=headers)).status_code == 200
        assert "No budget is set." in (await client.get("/models")).text
    app = App("memory://")
    async with pages(app, Access(required=True)) as client:
        await app.budgets.set("day", dollars=1)
        token = await token_for(app, Scope.READ)
        page = (await client.get("/models", headers={"authorization": f"Bearer {token}"})).text
        assert "of $1.00" in page and "hx-put" not in page and "hx-delete" not in page


async def test_calls_of_a_job() -> None:
    """Each with its state, tokens and cost; what users or providers wrote stays text."""
    app = shop()
    async with pages(app) as client:
        job = (await client.post("/api/v1/jobs", json={"task": "echo", "args": ["a"]})).json()["job"]
        assert "Calls of models" not in (await client.get(f"/jobs/{job}")).text
        await fill(app)
        assert (await client.get(f"/jobs/{JOB}")).status_code == 404
        await fill(app, lost=False, job=UUID(job), error=SCRIPT)
        page = (await client.get(f"/jobs/{job}")).text
        check_page(page)
        assert "Calls of models" in page and "$2.50" in page and "≤ 200" in page
        assert "&lt;script&gt;" in page and SCRIPT not in page


async def test_what_an_attempt_logged() -> None:
    """Its lines, as text."""
    app = App("memory://")

    @app.task
    async def talk(ctx: Context) -> None:
        ctx.log.warning("look: %s", SCRIPT)

    async with pages(app, worker=True) as client:
        job = (await client.post("/api/v1/jobs", json={"task": "talk"})).json()["job"]
        await until_final(app, app.job(job))
        page = (await client.get(f"/jobs/{job}")).text
        check_page(page)
        assert "What attempt 1 logged: 1 lines" in page and "warning: look: &lt;script&gt;" in page


async def test_workers_tell_their_version() -> None:
    """With each heartbeat, beside their figures."""
    app = shop()
    async with pages(app, worker=True) as client:

        async def heard() -> bool:
            [session] = await app.runtime.stores.inspect.list_sessions()
            return "headrace.version" in session.stats

        await wait_until(heard)
        [session] = await app.runtime.stores.inspect.list_sessions()
        for path in ("/workers", f"/workers/{session.id}"):
            assert f'<bdi class="text">{__version__}</bdi>' in (await client.get(path)).text
        assert "headrace.version" not in (await client.get("/metrics", headers={"accept": "*/*"})).text
