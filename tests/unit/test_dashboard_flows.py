"""The pages of workflows and flows: the list, one drawn, and what their buttons do; storing flows over HTTP."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import httpx2
import pytest

from headrace import App, chain
from headrace.apps.flows.storing import load_flow
from headrace.model.api_token import Scope
from tests.unit.dashboard_calls import check_page, pages, token_for
from tests.unit.flow_making import flow, node
from tests.unit.flow_serving import flows_app
from tests.unit.service_calls import code_of
from tests.unit.test_dashboard_jobs import EVIL, GATED
from tests.unit.test_dashboard_runs import browser_of, mill, page_of
from tests.unit.test_service_runs import ended

DAILY = flow(
    [node("Go", "manual"), node("Nightly", "schedule", position=[0, 90]), node("Keep", "noOp", position=[260, 0])],
    "Go -> Keep", "Nightly -> Keep", name="Daily",
)  # fmt: skip


async def store(client: httpx2.AsyncClient, document: Any, **more: Any) -> httpx2.Response:
    """Send flows to be stored."""
    return await client.post("/api/v1/workflows", json={"flow": document, **more})


async def test_workflows_of_an_app_are_listed_drawn_and_run() -> None:
    """Those that nobody has started yet, too; each run is on the page of its workflow."""
    app = mill()
    async with pages(app, worker=True) as client:
        page = await page_of(client, "/workflows")
        assert all(f'href="/workflows/{name}"' in page for name in ("shapes", "echo", "branches", "wide"))
        assert "with its first start" in page and 'id="import"' not in page
        page = await page_of(client, "/workflows/shapes")
        assert page.count('<g class="box"') == 5
        page = await page_of(client, "/workflows/echo")
        form = re.search(r'hx-post="(/api/v1/runs)" hx-vals="([^"]*)"', page)
        assert form is not None
        body = json.loads(html.unescape(form[2])) | {"input": EVIL}
        run = (await client.post(form[1], json=body, headers=browser_of(page))).json()["run"]
        await ended(client, run)
        page = await page_of(client, "/workflows/echo")
        assert f'href="/runs/{run}"' in page and ">switched off<" not in page
        await client.post("/api/v1/workflows/echo/deactivate", json={}, headers=browser_of(page))
        page = await page_of(client, "/workflows/echo")
        assert ">switched off<" in page and 'hx-post="/api/v1/workflows/echo/activate"' in page
        assert (await client.get("/workflows/none")).status_code == 404
        assert (await client.get("/flows")).status_code == 404
        for query in ("version=2", "version=x", "version=0"):
            assert (await client.get(f"/workflows/echo?{query}")).status_code == 422, query


async def test_flows_are_imported_drawn_run_and_switched() -> None:
    """They are at /flows, by the names that people gave them, with what begins them."""
    app = flows_app()
    async with pages(app, worker=True) as client:
        page = await page_of(client, "/flows")
        assert "No workflow is stored yet." in page and 'hx-post="/api/v1/workflows"' in page
        answer = await client.post("/api/v1/workflows", json={"flow": DAILY}, headers=browser_of(page))
        assert answer.status_code == 201
        told = {"workflow": "flow.daily", "flow": "Daily", "state": "imported", "version": 1, "active": False}
        assert answer.json() == {"workflows": [told | {"notes": []}]}
        page = await page_of(client, "/flows")
        assert "manual, schedule" in page and ">Daily<" in page
        page = await page_of(client, "/flows/flow.daily")
        assert page.count('<g class="box') == 3 and page.count('<g class="box trigger"') == 2
        answer = await client.post(
            "/api/v1/workflows/flow.daily/triggers", json={"active": True}, headers=browser_of(page)
        )
        assert answer.json() == {"workflow": "flow.daily", "active": True, "version": 2}
        assert (await load_flow(app, "Daily")).active
        page = await page_of(client, "/flows/flow.daily?version=1")
        assert '<a href="/flows/flow.daily?version=2">2</a>' in page
        run = (await client.post("/api/v1/runs", json={"workflow": "flow.daily", "input": {"n": 1}})).json()["run"]
        await ended(client, run)
        page = await page_of(client, f"/runs/{run}")
        assert "<small><bdi" in page and ">Keep<" in page and f'href="/runs/{run}/nodes/keep"' in page
        assert (await client.get("/workflows")).status_code == 404


async def test_a_flow_that_did_not_change_is_no_new_version() -> None:
    """A dry run and a second import answer with 200 and store nothing."""
    app = flows_app()
    async with pages(app) as client:
        dry = await store(client, DAILY, dry_run=True)
        assert (dry.status_code, dry.json()["workflows"][0]["state"]) == (200, "would be imported")
        assert not (await client.get("/api/v1/workflows")).json()["workflows"]
        assert (await store(client, {"data": [DAILY]})).status_code == 201
        same = await store(client, DAILY)
        assert (same.status_code, same.json()["workflows"][0]["state"]) == (200, "unchanged")
        active = await store(client, DAILY, activate=True)
        assert (active.status_code, active.json()["workflows"][0]["version"]) == (201, 2)


WRONG: tuple[tuple[Any, str], ...] = (
    (flow([node("Go", "manual"), node("Odd", "noSuchType")], "Go -> Odd"), "flow.nodes[1]"),
    (flow([node("Keep", "noOp")]), "flow.nodes"),
    ({"name": 3, "nodes": [node("Go", "manual")], "connections": {}}, "flow.name"),
    ([DAILY, flow([node("Go", "manual"), node("Odd", "noSuchType")], "Go -> Odd")], "flow[1].nodes[1]"),
    ([DAILY, DAILY], "flow[0].name"),
    ("text", "flow"),
    ([], "flow"),
    ([DAILY] * 51, "flow"),
)


@pytest.mark.parametrize(("document", "field"), WRONG)
async def test_flows_that_cannot_run_are_refused_with_the_field(document: Any, field: str) -> None:
    """Then none of those that came with them is stored either."""
    app = flows_app()
    async with pages(app) as client:
        answer = await store(client, document)
        assert answer.status_code == 422 and code_of(answer) in ("invalid_flow", "invalid_input")
        problem = answer.json()
        assert field in [one["field"] for one in problem.get("errors") or [problem]]
        assert not (await client.get("/api/v1/workflows")).json()["workflows"]


async def test_flows_are_stored_by_whoever_may_operate() -> None:
    """Others are refused, and see no button; an app without flows has no such route."""
    app = flows_app()
    async with pages(app, GATED) as client:
        reader = {"authorization": f"Bearer {await token_for(app, Scope.READ, Scope.SUBMIT)}"}
        operator = {"authorization": f"Bearer {await token_for(app, Scope.READ, Scope.OPERATE)}"}
        for path, body in (("", {"flow": DAILY}), ("/flow.daily/triggers", {"active": True})):
            answer = await client.post(f"/api/v1/workflows{path}", json=body, headers=reader)
            assert answer.status_code == 403, path
        assert 'id="import"' not in (await client.get("/flows", headers=reader)).text
        answer = await client.post("/api/v1/workflows", json={"flow": DAILY}, headers=operator)
        assert answer.status_code == 201
        page = (await client.get("/flows/flow.daily", headers=operator)).text
        assert "/triggers" in page and 'hx-post="/api/v1/runs"' not in page
        missing = await client.post("/api/v1/workflows/flow.no/triggers", json={"active": True}, headers=operator)
        assert missing.status_code == 404
    async with pages(App("memory://")) as client:
        assert (await store(client, DAILY)).status_code == 405


async def test_hostile_names_stay_text() -> None:
    """Of flows, of their nodes, and of ports."""
    app = flows_app()
    name = EVIL.replace("\u202e", "")
    async with pages(app) as client:
        document = flow([node(name, "manual"), node("b", "noOp")], name=f"Evil {name}")
        document["connections"] = {name: {"main": [[{"node": "b", "type": "main", "index": 0}]]}}
        stored = await store(client, document)
        assert stored.status_code == 201, stored.text
        for path in ("/flows", f"/flows/{stored.json()['workflows'][0]['workflow']}"):
            page = await page_of(client, path)
            assert "<script>alert" not in page and "&lt;script&gt;" in page


async def test_long_names_and_large_flows_stay_small_pages() -> None:
    """A name of 60 kB is cut on every page that tells it."""
    app = flows_app()
    long = "n" * 60_000
    async with pages(app) as client:
        document = flow([node("Go", "manual"), node(long, "noOp")], f"Go -> {long}", name=f"F{long}")
        stored = await store(client, document)
        assert stored.status_code == 201, stored.text[:300]
        name = stored.json()["workflows"][0]["workflow"]
        run = (await client.post("/api/v1/runs", json={"workflow": name})).json()["run"]
        for path in ("/flows", f"/flows/{name}", f"/runs/{run}", f"/runs/{run}/nodes/{'n' * 48}"):
            await page_of(client, path)


async def test_long_lists_of_workflows_have_pages() -> None:
    """Each stands on one of them, those that are not stored too."""
    app = App("memory://")

    @app.task
    async def echo(text: str) -> str:
        return text

    for number in range(60):
        app.workflow(f"w{number:02}", chain(echo.s()))
    async with pages(app) as client:
        for number in range(0, 60, 2):
            await client.post("/api/v1/runs", json={"workflow": f"w{number:02}", "input": "a"})
        seen, path = list[str](), "/workflows"
        while path:
            page = await page_of(client, path)
            check_page(page)
            seen += re.findall(r'<th scope="row"><a href="/workflows/(w\d\d)">', page)
            found = re.search(r'<a href="([^"]*)" rel="next">', page)
            path = html.unescape(found[1]) if found else ""
        assert sorted(seen) == [f"w{number:02}" for number in range(60)]
