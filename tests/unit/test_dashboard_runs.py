"""The pages of runs and of their nodes: what is told of each shape and state, and what their buttons do."""

from __future__ import annotations

import html
import re
from typing import Any

import httpx2
import pytest

from headrace import App, Backoff, chain, group
from headrace.dashboard.live import Seen, events_of
from headrace.dashboard.memory import Memory
from headrace.dashboard.page import Look, Page, View
from headrace.dashboard.pages.runs import MOST, PAGES
from headrace.dashboard.rendering import render_parts
from headrace.dashboard.run_graph import RECORD
from headrace.engine.workflows.tree import read_tree
from headrace.model.api_token import Scope
from headrace.runs import start_options
from headrace.service.access import Access
from tests.unit.dashboard_calls import URL, check_page, csrf_in, pages, token_for
from tests.unit.test_dashboard_jobs import EVIL, GATED, LONG
from tests.unit.test_service_runs import ended
from tests.waiting import wait_until

#: A map whose entries have two nodes each, a wait beside it, and a graph within.
SHAPES: dict[str, Any] = {
    "nodes": [
        {"id": "each", "kind": "map", "over": {"$input": []}, "max_failed": None, "body": {
            "nodes": [{"id": "echo", "task": "echo", "args": [{"$input": []}]},
                      {"id": "even", "task": "even", "args": [{"$index": True}]}],
            "edges": [{"from": "echo", "to": "even"}]}},
        {"id": "plain", "kind": "map", "over": {"$input": []}, "body": {
            "nodes": [{"id": "echo", "task": "echo", "args": [{"$input": []}]}]}},
        {"id": "within", "kind": "workflow", "input": {"$input": []}, "body": {
            "nodes": [{"id": "value", "kind": "value", "value": {"$input": []}}]}},
        {"id": "ask", "kind": "wait", "signal": "publish/1"},
        {"id": "end", "task": "echo", "args": [{"$node": "ask"}]},
    ],
    "edges": [{"from": one, "to": "ask"} for one in ("each", "plain", "within")] + [{"from": "ask", "to": "end"}],
}  # fmt: skip


def mill() -> App:
    """Return an app with workflows of several shapes."""
    app = App("memory://")

    @app.task
    async def echo(text: Any) -> Any:
        return text

    @app.task(retry=Backoff.none())
    async def even(number: int) -> int:
        if number % 2:
            raise ValueError(f"{number} is odd {EVIL}")
        return number

    app.workflow("shapes", SHAPES)
    app.workflow("echo", chain(echo.s(), echo.s()))
    app.workflow("branches", group(chain(even.s(), echo.s()), chain(echo.s(), echo.s())) | echo.s())
    app.workflow("wide", group(*(echo.s() for _ in range(120))) | echo.s())
    return app


async def start(client: httpx2.AsyncClient, workflow: str, given: Any) -> str:
    """Start a run and return its id."""
    answer = await client.post("/api/v1/runs", json={"workflow": workflow, "input": given})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


async def page_of(client: httpx2.AsyncClient, path: str) -> str:
    """Return a page that keeps to what all pages keep to."""
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    check_page(answer.text)
    assert len(answer.content) < 150_000
    return answer.text


async def waiting(client: httpx2.AsyncClient, run: str) -> None:
    """Wait until a node of a run waits for its signal."""

    async def look() -> bool:
        return "publish/1" in (await client.get(f"/api/v1/runs/{run}")).text

    assert await wait_until(look)


def browser_of(page: str) -> dict[str, str]:
    """Return the headers by which a button of a page proves whose it is."""
    return {"origin": URL, "x-csrf-token": csrf_in(page)}


async def test_a_run_that_waits_is_signalled_cancelled_and_repeated() -> None:
    """The form sends its one field as the body; a run that has ended offers other buttons than one that runs."""
    async with pages(mill(), worker=True) as client:
        run = await start(client, "shapes", [0, 1, 2])
        await waiting(client, run)
        page = await page_of(client, f"/runs/{run}")
        assert f'href="/runs/{run}/nodes/ask"' in page and "waits for signal" in page
        assert f'hx-post="/api/v1/runs/{run}/cancel"' in page and "/rerun" not in page
        assert f'data-live="/live/runs/{run}"' in page
        page = await page_of(client, f"/runs/{run}/nodes/ask")
        form = re.search(r'<form class="fields" hx-post="([^"]*)"[^>]* data-whole="payload"', page)
        assert form is not None and f'data-live="/live/runs/{run}/nodes/ask"' in page
        answer = await client.post(html.unescape(form[1]), json={"by": "ann"}, headers=browser_of(page))
        assert answer.json() == {"key": "publish/1", "sent": True}
        assert (await ended(client, run))["output"] == {"by": "ann"}
        page = await page_of(client, f"/runs/{run}/nodes/end")
        assert "&#34;by&#34;: &#34;ann&#34;" in page and f'hx-post="/api/v1/runs/{run}/rerun"' in page
        assert "data-live" not in page + await page_of(client, f"/runs/{run}"), "what has ended is not followed"
        body = {"from": "end"}
        again = await client.post(f"/api/v1/runs/{run}/rerun", json=body, headers=browser_of(page))
        await ended(client, again.json()["run"])
        page = await page_of(client, f"/runs/{again.json()['run']}")
        assert f'href="/runs/{run}"' in page and "from node" in page
        assert (await page_of(client, f"/runs/{again.json()['run']}/nodes/plain")).count(">kept<") == 3


async def test_graphs_are_drawn_level_by_level() -> None:
    """A map is one box with its counts, an entry is a graph of its own, and so is what is within a node."""
    async with pages(mill(), worker=True) as client:
        run = await start(client, "shapes", [0, 1, 2])
        await waiting(client, run)
        page = await page_of(client, f"/runs/{run}")
        assert page.count('<a class="box') == 5 and "success · 3/3" in page and "parked" in page
        assert page.count('class="critical"') == 1
        page = await page_of(client, f"/runs/{run}/nodes/each")
        assert "<svg" not in page.partition("<main")[2] and "each[1]" in page and "1 is odd" in page
        page = await page_of(client, f"/runs/{run}/nodes/each?state=failed")
        assert "nodes/each%5B1%5D" in page and "nodes/each%5B0%5D" not in page
        page = await page_of(client, f"/runs/{run}/nodes/each[1]")
        assert page.count('<a class="box') == 2 and f"/runs/{run}/nodes/each%5B1%5D/even" in page
        assert '<pre class="payload" dir="auto" tabindex="0">1</pre>' in page
        page = await page_of(client, f"/runs/{run}/nodes/each[1]/even")
        job = re.search(r'href="/jobs/([0-9a-f-]{36})"', page)
        assert job is not None and "1 is odd" in await page_of(client, f"/jobs/{job[1]}")
        assert f'href="/runs/{run}/nodes/each%5B1%5D">' in page
        assert re.search(r"&#34;args&#34;: \[\s+1\s+\]", page)
        page = await page_of(client, f"/runs/{run}/nodes/plain[2]")
        assert re.search(r"&#34;args&#34;: \[\s+2\s+\]", page)
        page = await page_of(client, f"/runs/{run}/nodes/within")
        assert page.count('<a class="box') == 1 and f"/runs/{run}/nodes/within/value" in page


async def test_a_failed_branch_tells_which_node_and_what_was_passed_over() -> None:
    """The run's error, that of the node, and the nodes behind it."""
    async with pages(mill(), worker=True) as client:
        run = await start(client, "branches", 3)
        await ended(client, run, "failed")
        page = await page_of(client, f"/runs/{run}")
        for told in ("s-failed", "s-skipped", "3 is odd"):
            assert told in page
        assert "<script>alert" not in page
        page = await page_of(client, f"/runs/{run}/nodes/even")
        assert "3 is odd" in page and "Run again from here" in page
        assert "There is none." in page


async def test_many_alike_are_one_box_and_the_table_is_bounded() -> None:
    """What a table leaves out is counted."""
    async with pages(mill(), worker=True) as client:
        run = await start(client, "wide", "a")
        await ended(client, run)
        page = await page_of(client, f"/runs/{run}")
        assert "120 × echo" in page and page.count('<a class="box') == 2
        assert page.count('<th scope="row">') == MOST and "71 more are not shown." in page


@pytest.mark.parametrize("text", [EVIL, LONG])
async def test_what_users_wrote_stays_text(text: str) -> None:
    """As input, argument and output: escaped and bounded, as a key of a run too."""
    async with pages(mill(), worker=True) as client:
        body = {"workflow": "echo", "input": text, "key": text[:20]}
        run = (await client.post("/api/v1/runs", json=body)).json()["run"]
        await ended(client, run)
        for path in (f"/runs/{run}", f"/runs/{run}/nodes/echo-2", "/runs"):
            page = await page_of(client, path)
            assert "<script>alert" not in page and "x<b>" not in page, path
        shown = html.unescape(re.sub(r"<[^>]*>", "", await page_of(client, f"/runs/{run}/nodes/echo-2")))
        assert text[:60] in shown.replace('\\"', '"')


async def test_lists_are_filtered_and_have_pages() -> None:
    """By workflow and state; each run stands on one page, and what is wrong in an address is told by its field."""
    async with pages(mill()) as client:
        for _ in range(60):
            await start(client, "echo", 1)
        other = await start(client, "branches", 2)
        assert (await page_of(client, "/runs?workflow=branches")).count('<a href="/runs/') == 1
        assert other in await page_of(client, "/runs?state=running&workflow=branches")
        assert "No run is like that." in await page_of(client, "/runs?state=failed")
        seen, path = list[str](), "/runs"
        while path:
            page = await page_of(client, path)
            seen += re.findall(r'<a href="/runs/([0-9a-f-]{36})">', page)
            found = re.search(r'<a href="([^"]*)" rel="next">', page)
            path = html.unescape(found[1]) if found else ""
        assert len(seen) == len(set(seen)) == 61
        for query in ("state=odd", "workflow=a/b", "cursor=x", "page=2"):
            answer = await client.get(f"/runs?{query}")
            assert answer.status_code == 422 and query.split("=")[0] in answer.text, query
        missing = "01980000-0000-7000-8000-000000000000"
        for path, status in ((f"/runs/{missing}", 404), (f"/runs/{other}/nodes/none", 404), ("/runs/0198", 422)):
            assert (await client.get(path)).status_code == status, path
        assert (await client.get(f"/runs/{other}?state=odd")).status_code == 422


@pytest.mark.parametrize("access", [Access(read_only=True), GATED])
async def test_whoever_may_only_look_sees_no_button(access: Access) -> None:
    """Neither to cancel nor to send a signal."""
    app = mill()
    async with pages(app, access, worker=True) as client:
        submitted = await app.start_json("shapes", [1], start_options(None, None, None, None))
        reader = {"authorization": f"Bearer {await token_for(app, Scope.READ)}"} if access.required else {}

        async def parked() -> bool:
            return "waits for signal" in (await client.get(f"/runs/{submitted.id}", headers=reader)).text

        assert await wait_until(parked)
        for path in (f"/runs/{submitted.id}", f"/runs/{submitted.id}/nodes/ask", "/workflows/shapes"):
            page = (await client.get(path, headers=reader)).text
            assert not re.findall(r'hx-post="/api[^"]*"', page), path


def page_named(name: str) -> Page:
    """Return a page of runs."""
    return next(page for page in PAGES if page.name == name)


async def test_looks_at_what_is_live_share_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes there are: the pages of a run and of its nodes. A page that is asked for is new."""
    app, reads = mill(), list[str]()

    async def counted(means: Any, view: Any) -> Any:
        reads.append(view.workflow)
        return await read_tree(means, view)

    monkeypatch.setattr("headrace.runs.read_tree", counted)
    memory = Memory(clock=lambda: 0.0)
    async with app:
        run = await app.start_json("echo", "a", start_options(None, None, None, None))
        params = {"run_id": str(run.id), "path": "echo"}
        for live in (True, True, False):
            for name in ("run", "run_node"):
                await page_named(name).make(View(app, Look(), params, memory=memory, live=live))
    assert len(reads) == 1 + 2


async def test_what_comes_to_an_open_page_of_a_node_is_sent() -> None:
    """The form of the signal that it waits for by now, while it does, and a link that draws what is within it."""
    app, page = mill(), page_named("run_node")
    async with app.worker():
        run = await app.start_json("shapes", [0, 1], start_options(None, None, None, None))

        async def parts_at(path: str) -> dict[str, str]:
            view = View(app, Look(), {"run_id": str(run.id), "path": path})
            return render_parts(page, view, await page.make(view))

        async def waits() -> bool:
            return 'hx-post="/api/v1/signals/publish%2F1"' in (await parts_at("ask"))["live_signal"]

        assert await wait_until(waits)
        assert f'href="/runs/{run.id}/nodes/each%5B1%5D"' in (await parts_at("each[1]"))["live_late"]
        await app.signal("publish/1", 1)
        await run.result("20s")
        assert "form" not in (await parts_at("ask"))["live_signal"]


async def test_what_is_live_is_small() -> None:
    """A run goes on: a record of each box is sent where it changed, and nothing changes with the time alone."""
    app = mill()
    async with app.worker():
        run = await app.start_json("shapes", [0, 1], start_options(None, None, None, None))
        page, params = page_named("run"), {"run_id": str(run.id)}

        async def look() -> str:
            return page.texts["graph"](await page.make(View(app, Look(), params)))

        async def parked() -> bool:
            return "w!" in await look()

        assert await wait_until(parked)
        before = await look()
        assert len(before) == 5 * RECORD and before[::RECORD] == "sss" + "w" + "p"
        view = View(app, Look(), params)
        parts = render_parts(page, view, await page.make(view))
        assert set(parts) == {"live_head", "live_nodes", "live_output"}
        later = View(app, Look(), params)
        assert render_parts(page, later, await page.make(later))["live_nodes"] == parts["live_nodes"]
        await app.signal("publish/1", 1)
        await run.result("20s")
        after = await look()
        assert after[::RECORD] == "sssss"
        assert len(events_of(Seen(texts={"graph": before}), Seen(texts={"graph": after}))) < 200
