"""What pages of the dashboard cost and hold at most, and what they do with what no page expects."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff
from headrace.dashboard import live
from headrace.dashboard.formats import number, span
from headrace.dashboard.live import MOST_LOOKS, Rooms, Seen, events_of
from headrace.dashboard.memory import MOST_KEPT, Memory
from headrace.dashboard.page import Look, View
from headrace.dashboard.rendering import link_maker, render_other
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import JobView
from headrace.service.pages import MOST_QUERY
from tests.unit.dashboard_calls import check_page, pages
from tests.unit.engine_app import until_final
from tests.unit.service_calls import shop


async def test_however_many_pages_are_watched_few_are_looked_at_at_once() -> None:
    """Each has its turn."""
    rooms, going, most = Rooms(), 0, 0

    async def look() -> Seen:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(0)
        going -= 1
        return Seen({"live_a": "1"})

    async with AsyncExitStack() as stack, asyncio.timeout(20):
        watching = [await stack.enter_async_context(aclosing(rooms.watch(name, look, every=1))) for name in range(60)]
        await asyncio.gather(*(anext(one) for one in watching))
        assert rooms.watched == 60 and most == MOST_LOOKS


async def test_what_changed_is_told_once_for_all_who_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """To compare two looks costs more than to send what differs."""
    rooms, looks, compared = Rooms(), asyncio.Queue[str](), list[int]()

    async def look() -> Seen:
        return Seen({"live_a": await looks.get()})

    def counted(before: Seen | None, after: Seen) -> str:
        compared.append(1)
        return events_of(before, after)

    monkeypatch.setattr(live, "events_of", counted)
    async with AsyncExitStack() as stack, asyncio.timeout(20):
        watching = [await stack.enter_async_context(aclosing(rooms.events("a", look, every=0))) for _ in range(20)]
        for text in "xxy":
            looks.put_nowait(text)
            told = await asyncio.gather(*(anext(one) for one in watching))
            assert len(set(told)) == 1
        assert told[0] == b"event: live_a\ndata: y\n\n" and len(compared) == 3


async def test_a_look_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps no other page from its turn for long."""
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.01)
    async with asyncio.timeout(20), aclosing(Rooms().watch("a", asyncio.Event().wait, every=1)) as watching:  # type: ignore[arg-type]
        assert "too long" in (await anext(watching)).trouble


async def test_what_a_look_waits_for_may_be_cancelled() -> None:
    """The page is looked at again: whoever watches does not wait for ever."""
    looks = [asyncio.CancelledError(), None]

    async def look() -> Seen:
        fault = looks.pop(0) if looks else None
        if fault is not None:
            raise fault
        return Seen({"live_a": "1"})

    async with asyncio.timeout(20), aclosing(Rooms().watch("a", look, every=0.001)) as watching:
        assert (await anext(watching)).trouble
        assert (await anext(watching)).parts == {"live_a": "1"}


def test_a_line_of_a_user_is_the_line_that_is_sent() -> None:
    """What ends lines in no event stays as it is; what does makes further lines of one event."""
    text = "a\u2028b\x0bc\x85d"
    assert events_of(None, Seen({"live_a": text})) == f"event: live_a\ndata: {text}\n\n"
    assert events_of(None, Seen({"live_a": "a\r\nb\n"})) == "event: live_a\ndata: a\ndata: b\ndata: \n\n"


def test_names_that_are_no_text_are_shown() -> None:
    """Files may be called by bytes that are no UTF-8: a page with one can be sent."""
    page = render_other("error", Look(), {"status": 404, "title": "no", "detail": "caf\udce9"})
    assert "caf?" in page and page.encode()
    assert link_maker("")("a", "caf\udce9", name="caf\udce9") == "/a/caf%3F?name=caf%3F"


async def test_values_of_an_address_are_bounded() -> None:
    """One that is longer than any that means something is refused by its name."""
    async with pages(shop()) as client:
        for path in ("/dead-letters", "/live/dead-letters"):
            answer = await client.get(path, params={"kind": "k" * (MOST_QUERY + 1)})
            assert answer.status_code == 422 and "kind must be at most" in answer.text
        assert (await client.get("/dead-letters", params={"kind": "k" * MOST_QUERY})).status_code == 200


def test_what_is_remembered_of_figures_is_bounded() -> None:
    """Those that nobody looked at longest are forgotten."""
    view = View(shop())
    first, last = view.history("first"), view.history("last")
    for place in range(MOST_KEPT - 1):
        view.history(f"queue q{place}")
        view.history("last")
    assert view.history("last") is last and view.history("first") is not first


async def test_many_who_want_a_new_answer_share_one() -> None:
    """Those who come while it is asked for get the next one, all together."""
    memory, asked, may_go = Memory(), list[int](), asyncio.Event()

    async def ask() -> int:
        asked.append(1)
        await may_go.wait()
        return len(asked)

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        tasks = [group.create_task(memory.answer("x", ask, seconds=0, renew=True))]
        await asyncio.sleep(0)
        tasks += [group.create_task(memory.answer("x", ask, seconds=0, renew=True)) for _ in range(20)]
        await asyncio.sleep(0)
        may_go.set()
    assert [task.result() for task in tasks] == [1] + 20 * [2]


async def test_a_page_says_when_to_come_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As the API does while the store is away; and the log has why."""
    app = shop()
    async with pages(app) as client:

        async def away(*_: object, **__: object) -> None:
            raise StoreUnavailableError("the store is away")

        monkeypatch.setattr(app.runtime.stores.inspect, "list_jobs", away)
        answer = await client.get("/jobs")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "text/html" in answer.headers["content-type"] and "the store is away" in caplog.text


async def test_lists_of_jobs_read_nothing_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the pages nor the API's list asks the store for arguments and results that it does not show."""
    app = shop()
    async with pages(app, worker=True) as client:
        inspect = app.runtime.stores.inspect
        read, [session] = inspect.list_jobs, await inspect.list_sessions()
        asked: list[object] = []

        async def noted(**wanted: Any) -> list[JobView]:
            asked.append(wanted.get("brief"))
            return await read(**wanted)

        monkeypatch.setattr(inspect, "list_jobs", noted)
        for count, path in enumerate(("/", "/jobs", f"/workers/{session.id}", "/api/v1/jobs"), 1):
            assert (await client.get(path)).status_code == 200
            assert asked == count * [True], path


@pytest.mark.parametrize("path", ["/", "/models?since=all"])
async def test_a_look_reads_sessions_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many figures are made of them."""
    app, reads = shop(), list[str]()

    def noted(name: str) -> Any:
        read = getattr(app.runtime.stores.inspect, name)

        async def note() -> Any:
            reads.append(name)
            return await read()

        return note

    async with pages(app) as client:
        for name in ("list_sessions", "store_info"):
            monkeypatch.setattr(app.runtime.stores.inspect, name, noted(name))
        assert (await client.get(path)).status_code == 200
    assert sorted(reads) == ["list_sessions", "store_info"]


def test_figures_beyond_measure() -> None:
    """Each is shown somehow."""
    assert number(10**400) == f"{10**400:,}" and number(2**63 - 1) == "9,223,372,036,854,775,807"
    assert number(float("nan")) == "nan" and number(float("inf"), 2) == "inf"
    assert span(float("nan")) == span(float("-inf")) == "–" and span(timedelta.max) == "1000000000 d"


async def test_errors_of_long_names_and_many_tries_weigh_little() -> None:
    """Of kinds of errors the beginning is shown, and of old attempts no trace."""
    app = App("memory://")

    @app.task(retry=Backoff(timedelta(), timedelta(), max_attempts=12))
    async def fail(text: str) -> str:
        raise type("E" * 50_000, (Exception,), {})(text)

    async with pages(app, worker=True) as client:
        job = (await client.post("/api/v1/jobs", json={"task": "fail", "args": ["x" * 9_000]})).json()["job"]
        await until_final(app, app.job(job))
        for path in (f"/jobs/{job}", "/dead-letters", "/jobs", "/"):
            page = (await client.get(path)).text
            check_page(page)
            assert len(page) < 150_000, path
        assert (await client.get(f"/jobs/{job}")).text.count("<details") == 10
