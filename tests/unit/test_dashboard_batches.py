"""The pages of batches: the list, one with its grid, its failures, results and actions, and one item with its tries."""

from __future__ import annotations

import html
import re
from typing import Any

import httpx2
import pytest

from headrace import App
from headrace.dashboard.memory import Memory
from headrace.model.api_token import Scope
from headrace.model.budget import Budget
from headrace.model.money import NANO
from headrace.model.usage import Usage, current_meter
from headrace.service.access import Access
from tests.unit.dashboard_calls import check_page, csrf_in, pages, token_for
from tests.unit.test_dashboard_jobs import EVIL, GATED, LONG, shop
from tests.waiting import wait_until

ANSWER = {"accept": "*/*"}


async def submit(client: httpx2.AsyncClient, task: str, items: list[Any], **more: Any) -> str:
    """Submit a batch and return its id."""
    answer = await client.post("/api/v1/batches", json={"task": task, "items": items, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["batch"])


async def until_closed(client: httpx2.AsyncClient, batch: str) -> None:
    """Wait until a batch is closed."""

    async def closed() -> bool:
        return bool((await client.get(f"/api/v1/batches/{batch}", headers=ANSWER)).json()["state"] == "closed")

    await wait_until(closed, message="the batch to close")


def letters_in(page: str) -> str:
    """Return what the grid is drawn from."""
    found = re.search(r'data-letters="([^"]*)"', page)
    assert found
    return found[1]


async def press(client: httpx2.AsyncClient, page: str, verb: str, body: dict[str, Any] | None = None) -> int:
    """Do what the button or form of a page does."""
    found = re.search(rf'hx-post="([^"]*/{verb})"', page)
    assert found, f"the page offers no {verb}"
    headers = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page)}
    return (await client.post(html.unescape(found[1]), json=body or {}, headers=headers)).status_code


async def test_a_batch_that_waits_is_paused_resumed_and_cancelled() -> None:
    """Each state offers what can be done to it, and the reason of a pause is text."""
    async with pages(shop()) as client:
        batch = await submit(client, "echo", ["a"] * 5)
        page = (await client.get(f"/batches/{batch}")).text
        check_page(page)
        assert letters_in(page) == "wwwww" and "data-live" in page
        assert await press(client, page, "pause", {"reason": "<b>tea</b>"}) == 200
        page = (await client.get(f"/batches/{batch}")).text
        check_page(page)
        assert "&lt;b&gt;tea&lt;/b&gt;" in page and 'data-opens="pause"' not in page
        assert "paused" in (await client.get("/batches")).text
        assert await press(client, page, "resume") == 200
        page = (await client.get(f"/batches/{batch}")).text
        assert "tea" not in page and 'data-opens="pause"' in page
        assert 'data-confirm="Cancel this batch?' in page
        assert await press(client, page, "cancel") == 200
        page = (await client.get(f"/batches/{batch}")).text
        assert letters_in(page) == "ccccc" and "s-cancelled" in page and "/cancel" not in page


async def test_a_batch_that_ended_tells_why_items_failed_and_runs_them_again() -> None:
    """Nobody follows it; its failures lead to the dead letters, its items to their jobs over the rounds."""
    app = shop()
    async with pages(app, worker=True) as client:
        batch = await submit(client, "fail", [f"no file {number}.txt" for number in range(3)])
        await until_closed(client, batch)
        page = (await client.get(f"/batches/{batch}")).text
        check_page(page)
        assert letters_in(page) == "fff" and "data-live" not in page
        assert "ValueError: no file 1.txt" in page
        letters = re.search(r'href="(/dead-letters\?fingerprint=[0-9a-f]+)"', page)
        assert letters and "no file" in (await client.get(letters[1])).text
        assert f'href="/api/v1/batches/{batch}/results.csv"' in page
        assert await press(client, page, "retry") == 200
        await until_closed(client, batch)
        page = (await client.get(f"/batches/{batch}")).text
        assert page.count("run again") == 3 and letters_in(page) == "fff"
        item = (await client.get(f"/batches/{batch}/items/2")).text
        check_page(item)
        tries = re.findall(r'<a href="(/jobs/[0-9a-f-]{36})">', item)
        assert len(tries) == 2 and "no file 2.txt" in (await client.get(tries[0])).text


@pytest.mark.parametrize("text", [EVIL, LONG, "x" * 200_000])
@pytest.mark.parametrize("task", ["echo", "fail"])
async def test_what_users_wrote_stays_text(task: str, text: str) -> None:
    """As key, argument, result and error: escaped, in its own direction, and bounded."""
    async with pages(shop(), worker=True) as client:
        batch = await submit(client, task, [text] * 4)
        await until_closed(client, batch)
        for path in ("/batches", f"/batches/{batch}", f"/batches/{batch}/items/0"):
            page = (await client.get(path)).text
            check_page(page)
            assert len(page.encode()) < 150_000, path
            assert "<script>alert" not in page and "x<b>" not in page


async def test_a_grid_has_pages_of_ten_thousand_items() -> None:
    """Each shows its part, and leads to the others; places that none can be are told."""
    app = App("memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with pages(app) as client:
        batch = (await app.submit(double, list(range(10_003)))).id
        page = (await client.get(f"/batches/{batch}")).text
        assert len(letters_in(page)) == 10_000 and len(page.encode()) < 150_000
        assert f'href="/batches/{batch}?first=10000" rel="next"' in page and 'rel="prev"' not in page
        page = (await client.get(f"/batches/{batch}?first=10000")).text
        check_page(page)
        assert letters_in(page) == "www" and 'rel="next"' not in page and 'rel="prev"' in page
        assert letters_in((await client.get(f"/batches/{batch}?first=20000")).text) == ""
        for query in ("first=-1", "first=x", "first=2147483647", "cursor=x", "page=2"):
            answer = await client.get(f"/batches/{batch}?{query}")
            assert answer.status_code == 422 and query.split("=")[0] in answer.text, query


async def test_results_have_pages() -> None:
    """Each finished item stands on one of them."""
    async with pages(shop(), worker=True) as client:
        batch = await submit(client, "echo", [f"text {number}" for number in range(60)])
        await until_closed(client, batch)
        seen, path = list[str](), f"/batches/{batch}"
        while path:
            page = (await client.get(path)).text
            check_page(page)
            seen += re.findall(r'<bdi class="text">(text \d+)</bdi>', page)
            found = re.search(r'<a href="([^"]*)#results" rel="next">', page)
            path = html.unescape(found[1]) if found else ""
        assert len(seen) == len(set(seen)) == 60


async def test_the_list_finds_batches() -> None:
    """The newest first, over pages; one by its id; counts of what is closed and of what waits."""
    async with pages(shop(), worker=True) as client:
        for _ in range(27):
            batch = await submit(client, "echo", ["a"])
        await until_closed(client, batch)
        first = (await client.get("/batches")).text
        check_page(first)
        found = re.findall(r'<a href="/batches/([0-9a-f-]{36})">', first)
        assert len(found) == 25 and found[0] == batch and "100 %" in first
        older = re.search(r'<a href="(/batches\?cursor=[^"]*)" rel="next">', first)
        assert older
        page = (await client.get(html.unescape(older[1]))).text
        assert len({*found, *re.findall(r'<a href="/batches/([0-9a-f-]{36})">', page)}) == 27
        page = (await client.get(f"/batches?id={batch}")).text
        assert re.findall(r'<a href="/batches/([0-9a-f-]{36})">', page) == [batch]
        nothing = "01980000-0000-7000-8000-000000000000"
        assert "There is no such batch." in (await client.get(f"/batches?id={nothing}")).text
        assert (await client.get(f"/batches/{nothing}")).status_code == 404
        assert (await client.get(f"/batches/{batch}/items/7")).status_code == 404
        for path in ("/batches?id=1", "/batches/1", f"/batches/{batch}/items/x", f"/batches/{batch}/items/9999999999"):
            assert (await client.get(path)).status_code == 422, path


async def test_what_a_batch_may_spend_is_shown() -> None:
    """Beside what it spent."""
    app = shop()
    async with pages(app) as client:
        batch = await submit(client, "echo", ["a"])
        assert "It made no model call" in (await client.get(f"/batches/{batch}")).text
        other = await submit(client, "echo", ["a"])
        await app.runtime.stores.budgets.set_budget(f"batch:{other}", Budget(cost_nano=5_000_000_000, tokens=1_000))
        page = (await client.get(f"/batches/{other}")).text
        check_page(page)
        assert "of $5.00" in page and "of 1,000" in page and "<meter" in page


async def test_what_items_cost_is_shown_as_far_as_it_is_known() -> None:
    """What has no price is called unknown beside what has one; small amounts keep their digits."""
    app, used = App("memory://"), [Usage(calls=1, cost_nano=37_500), Usage(7, 5, 2, cost_nano=2 * NANO, unpriced=1)]

    @app.task
    async def ask(number: int) -> int:
        if number < len(used):
            meter = current_meter.get()
            assert meter is not None
            meter.add(used[number])
        return number

    async with pages(app, worker=True) as client:
        batch = await submit(client, "ask", [0, 1, 2])
        await until_closed(client, batch)
        page = (await client.get(f"/batches/{batch}")).text
        costs = sorted(re.findall(r'<td class="num">([$–][^/]*)<', page))
        assert costs == ["$0.000038", "$2.00 + unknown<br><small>12 tokens", "–"]


async def test_actions_by_rights() -> None:
    """Whoever may only look sees no button that does something."""
    app = shop()
    async with pages(app, GATED) as client:
        submitter = {"authorization": f"Bearer {await token_for(app, Scope.SUBMIT)}"}
        answer = await client.post("/api/v1/batches", json={"task": "echo", "items": ["a"]}, headers=submitter)
        batch = answer.json()["batch"]
        reader = {"authorization": f"Bearer {await token_for(app, Scope.READ)}"}
        operator = {"authorization": f"Bearer {await token_for(app, Scope.READ, Scope.OPERATE)}"}
        seen = {who: (await client.get(f"/batches/{batch}", headers=headers)).text
                for who, headers in (("reader", reader), ("operator", operator))}  # fmt: skip
        assert "api/v1/batches" in seen["operator"] and 'hx-post="/api/v1/batches' in seen["operator"]
        assert 'hx-post="/api/v1/batches' not in seen["reader"] and 'data-opens="pause"' not in seen["reader"]


@pytest.mark.parametrize("read_only", [False, True])
async def test_read_only(read_only: bool) -> None:
    """Nothing is offered of what is offered elsewhere."""
    app = App("memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with pages(app, Access(read_only=read_only)) as client:
        batch = (await app.submit(double, [1])).id
        page = (await client.get(f"/batches/{batch}")).text
        assert ('hx-post="/api/v1/batches' in page) is not read_only
        assert ('data-opens="pause"' in page) is not read_only


async def test_an_answer_is_kept_as_long_as_it_cost() -> None:
    """What was quick is asked for again soon, what was slow seldom; a question that failed is asked again at once."""
    clock = [0.0]
    memory, asked = Memory(lambda: clock[0]), list[float]()

    async def ask() -> int:
        asked.append(clock[0])
        clock[0] += 0.01 if len(asked) == 1 else 1.0
        if len(asked) == 3:
            raise ValueError
        return len(asked)

    async def at(second: float) -> int:
        clock[0] = second
        return await memory.answer("x", ask, seconds=0.5)

    assert [await at(0.0), await at(0.4), await at(0.6), await at(20.0)] == [1, 1, 2, 2]
    assert (memory.last("x"), memory.last("y"), memory.due("y")) == (2, None, 0.0)
    assert memory.due("x") == pytest.approx(21.6)
    with pytest.raises(ValueError):
        await at(30.0)
    assert await at(32.0) == 4
    assert asked == [0.0, 0.6, 30.0, 32.0]
