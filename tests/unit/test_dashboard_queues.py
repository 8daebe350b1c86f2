"""The pages of queues and workers: what is told of each, and what their buttons do."""

from __future__ import annotations

import html
import re

import pytest

from headrace import App, Backoff
from headrace.dashboard.attention import Facts, Failed, Weight, notes_of
from headrace.dashboard.page import View
from headrace.dashboard.pages import overview
from headrace.model.crashes import POISON
from headrace.model.event import OutboxStats
from headrace.model.stats import QueueStats
from tests.unit.dashboard_calls import check_page, csrf_in, pages
from tests.unit.engine_app import until_final
from tests.unit.test_dashboard_jobs import shop


def stats(**given: object) -> QueueStats:
    """Return figures of a queue in which nothing happens."""
    usual: dict[str, object] = dict.fromkeys(
        ("scheduled", "ready", "running", "parked", "succeeded", "failed", "cancelled", "live_workers"), 0
    )
    usual |= {"name": "mail", "oldest_ready_age": None, "rate_in": 0.0, "rate_out": 0.0, "paused": False}
    return QueueStats(**(usual | given))  # type: ignore[arg-type]


async def test_a_queue_is_paused_with_a_reason_and_resumed() -> None:
    """The reason stands on the page as text, and the buttons change with the state."""
    app = shop()
    async with pages(app) as client:
        await client.post("/api/v1/jobs", json={"task": "echo", "args": ["a"]})
        page = (await client.get("/queues/default")).text
        check_page(page)
        browser = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page)}
        form = re.search(r'<form class="fields" hx-post="([^"]*pause)"', page)
        assert form is not None
        answer = await client.post(
            html.unescape(form[1]), json={"reason": "<b>tea</b>", "force": True}, headers=browser
        )
        assert answer.status_code == 200
        page = (await client.get("/queues/default")).text
        assert "&lt;b&gt;tea&lt;/b&gt;" in page and 'hx-post="/api/v1/queues/default/resume"' in page
        assert "is paused; 1 jobs wait" in (await client.get("/")).text
        await client.post("/api/v1/queues/default/resume", json={}, headers=browser)
        assert "No live worker serves queue default; 1 jobs wait." in (await client.get("/")).text


async def test_lists_of_queues_and_workers() -> None:
    """By name, with who serves them; a session that there is not is told so."""
    app = shop()
    async with pages(app, worker=True) as client:
        await client.post("/api/v1/jobs", json={"task": "echo", "args": ["a"]})
        for path in ("/queues", "/queues?name=def", "/workers", "/workers?all=true"):
            page = (await client.get(path)).text
            check_page(page)
            assert "default" in page
        assert "No queue has jobs yet." in (await client.get("/queues?name=zzz")).text
        session = re.search(r'href="(/workers/[0-9a-f-]{36})"', (await client.get("/queues/default")).text)
        assert session is not None
        page = (await client.get(session[1])).text
        check_page(page)
        assert "alive" in page
        assert (await client.get("/workers/01980000-0000-7000-8000-000000000000")).status_code == 404
        assert (await client.get("/queues/nobody")).status_code == 404


async def test_a_queue_of_the_app_that_nobody_used_has_a_page() -> None:
    """It is empty."""
    app = App("memory://")

    @app.task(queue="mail")
    async def send(text: str) -> None:
        """Send nothing."""

    async with pages(app) as client:
        assert (await client.get("/queues/mail")).status_code == 200


async def test_what_lists_leave_out_is_told() -> None:
    """Of queues on the overview."""
    app = App("memory://")

    async def echo(text: str) -> str:
        return text

    tasks = [app.task(name=f"echo{number}", queue=f"queue{number}")(echo) for number in range(53)]
    async with pages(app) as client:
        for task in tasks:
            await app.submit(task, ["a"])
        assert "3 more are not shown." in (await client.get("/")).text


def test_what_needs_attention() -> None:
    """Each fault once, the worst first; what is well is not told."""
    assert notes_of(Facts([stats(live_workers=1, ready=3, rate_out=2.0)])) == []
    found = notes_of(
        Facts(
            [
                stats(ready=3),
                stats(name="slow", paused=True, ready=1),
                stats(name="full", ready=9, live_workers=1, alarm_size=5),
            ],
            outbox=OutboxStats(parked=2),
        )
    )
    assert [note.weight for note in found] == [Weight.BAD, Weight.BAD, Weight.BAD, Weight.WARN]
    texts = [note.text.format_map(note.values) for note in found]
    assert "No live worker serves queue mail; 3 jobs wait." in texts and "Queue slow is paused; 1 jobs wait." in texts


def test_what_failed_is_told_as_far_as_it_was_looked_at() -> None:
    """Poison before all else; a number that a bounded look ended with is none of all."""
    told = [note.text.format_map(note.values) for note in notes_of(Facts(failed=Failed(2, 1_234)))]
    assert told == [
        "2 jobs of the last day killed their workers and were given up.",
        "1,234 jobs of the last day failed for good.",
    ]
    told = [note.text.format_map(note.values) for note in notes_of(Facts(failed=Failed(1, 7, complete=False)))]
    assert told == [
        "At least 1 jobs of the last day killed their workers and were given up.",
        "At least 7 jobs of the last day failed for good.",
    ]
    assert notes_of(Facts(failed=Failed(complete=False))) == []


@pytest.mark.parametrize(("having", "look"), [(0, 2_000), (1, 2_000), (4, 2_000), (10, 800), (39, 205), (5_000, 200)])
def test_a_look_at_what_failed_costs_the_same_for_many_queues(having: int, look: int) -> None:
    """Of each that has failed jobs as many are read; those without cost nothing."""
    assert overview.look_of([stats(failed=3)] * having + [stats()] * 7) == look


async def test_poison_is_told_behind_many_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes first though hundreds failed after it; and all of these are counted."""
    app = App("memory://")

    @app.task(retry=Backoff.none())
    async def fail(kind: str) -> None:
        raise type(kind, (Exception,), {})

    async with pages(app, worker=True) as client:
        await until_final(app, await fail.enqueue(POISON.kind))
        for job in [await fail.enqueue("Rotten") for _ in range(520)]:
            await until_final(app, job)
        page = (await client.get("/")).text
        first, second = "1 jobs of the last day killed their workers", "520 jobs of the last day failed for good."
        assert 0 < page.find(f">{first}") < page.find(f">{second}")
        monkeypatch.setattr(overview, "LOOKED_AT", 200)
        told = [note.text.format_map(note.values) for note in (await overview.overview(View(app)))["notes"]]
        assert "At least 200 jobs of the last day failed for good." in told
        assert not any(text.startswith(first) for text in told)
