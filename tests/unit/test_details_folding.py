"""What a service tells of details when it is scraped: the fold of the feed of ended batches, and who waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace import App
from headrace.apps.details import folding
from headrace.apps.details.desk import Details, register
from headrace.apps.details.folding import Fold, count_waiting, expose_details
from headrace.apps.details.names import DONE_FEED, INTAKE_QUEUE, SUBTASKS_QUEUE
from headrace.feeds import Feed
from tests.unit.test_details_figures import DONE, samples_of

COMPLETED = 'batch_tasks_total{type="skill",status="completed"}'


def details() -> Details:
    """Return the desk of an app in memory."""
    return register(App("memory://"))


async def end(app: App, count: int) -> None:
    """Let so many batches end."""
    for _ in range(count):
        await app.feed(DONE_FEED).append("done", DONE)


async def scrape(app: App, fold: Fold | None = None) -> dict[str, float]:
    """Return what a scrape tells."""
    return samples_of(await (expose_details(app) if fold is None else fold.expose(app)))


async def test_each_scrape_counts_what_ended_since() -> None:
    """All services tell the same, whenever they were started."""
    async with details().app as app:
        assert COMPLETED not in await scrape(app)
        for ended in (2, 5, 5):
            await end(app, ended - int((await scrape(app)).get(COMPLETED, 0)))
            told = await scrape(app)
            assert told[COMPLETED] == told['batch_dead_letters_total{type="skill"}'] == ended
        assert await scrape(app, Fold()) == told


async def test_scrapes_at_once_count_once() -> None:
    """Two servers of figures may ask one service."""
    async with details().app as app:
        await end(app, 3)
        fold = Fold()
        assert [told[COMPLETED] for told in await asyncio.gather(*(scrape(app, fold) for _ in range(3)))] == [3, 3, 3]


async def test_a_long_feed_is_read_in_bounded_scrapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is whole nothing is told: a part, and then more, would look like a restart and a burst."""
    monkeypatch.setattr(folding, "PAGE", 2)
    monkeypatch.setattr(folding, "MOST_PAGES", 3)
    read, limits = Feed.read, list[int]()

    async def watched(feed: Feed, after: int = 0, limit: int = 100) -> Any:
        limits.append(limit)
        return await read(feed, after, limit)

    monkeypatch.setattr(Feed, "read", watched)
    async with details().app as app:
        await end(app, 13)
        fold = Fold()
        told = [(await scrape(app, fold)).get(COMPLETED) for _ in range(3)]
        assert told == [None, None, 13]
        assert limits == [2] * 7
        await end(app, 8)  # what is known is told also while more than one scrape reads follows
        assert [(await scrape(app, fold))[COMPLETED] for _ in range(2)] == [19, 21]


async def test_a_feed_that_begins_again_is_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pruned to its last entry it forgets its numbers; figures keep what they counted."""
    async with details().app as app:
        await end(app, 3)
        fold = Fold()
        await scrape(app, fold)
        monkeypatch.setattr(folding, "DONE_FEED", "details.done.new")
        await app.feed("details.done.new").append("done", DONE)
        assert (await scrape(app, fold))[COMPLETED] == 4


async def test_entries_of_another_form_count_nothing() -> None:
    """A scrape never fails for them."""
    async with details().app as app:
        await app.feed(DONE_FEED).append("done", ["of", "another", "version"])
        await end(app, 1)
        assert (await scrape(app))[COMPLETED] == 1


async def test_requests_and_parts_that_wait_are_counted_by_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each at the priority that was asked for; looked at within bounds, and not at every scrape."""
    desk = details()
    async with desk.app as app:
        for priority in (5, 6, 6, 10):
            await desk.submit({"type": "skill", "count": 3, "priority": priority})
        part: dict[str, Any] = {
            "subtask_id": "b:0",
            "count": 3,
            "batch_index": 0,
            "calls": 1,
            "first_call": 0,
            "correlation": "b",
        }
        await app.find_task("details_subtask").enqueue(**part, asked={"priority": 4})
        # Of a job that does not tell, the highest of its class.
        await app.find_task("details_subtask").options(priority="high").enqueue(**part, asked={})
        await app.find_task("details_subtask").options(priority="bulk").enqueue(**part, asked={"priority": 77})
        assert await count_waiting(app) == {4: 1, 5: 1, 6: 2, 10: 1, 8: 1, 1: 1}
        fold = Fold()
        assert (await scrape(app, fold))['batch_queue_size{priority="6"}'] == 2
        await desk.submit({"type": "skill", "count": 3, "priority": 6})
        assert (await scrape(app, fold))['batch_queue_size{priority="6"}'] == 2
        monkeypatch.setattr(folding, "LOOK_SECONDS", 0.0)
        assert (await scrape(app, fold))['batch_queue_size{priority="6"}'] == 3
        monkeypatch.setattr(folding, "MOST_WAITING", 2)
        assert sum((await count_waiting(app)).values()) == 4
        assert {job.queue for job in await app.runtime.stores.inspect.list_jobs()} == {INTAKE_QUEUE, SUBTASKS_QUEUE}
