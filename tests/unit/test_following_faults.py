"""Feeds of batches and runs while the store fails: nothing is left out, and nobody waits for a large one."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Backoff
from headrace.engine.following import batch as batches
from headrace.engine.following import run as runs
from headrace.engine.following.growing import Grower, Growing
from headrace.model.batch import Progress
from headrace.model.errors import StoreUnavailableError
from headrace.model.feed import Entry
from tests.unit.feed_world import away
from tests.unit.test_service_following import shop
from tests.waiting import wait_until


class Failing:
    """A method of a store; those calls whose numbers are given fail before they do anything."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: Any, name: str, *numbers: int) -> None:
        self._inner, self._numbers, self.calls = getattr(owner, name), numbers, 0
        patch.setattr(owner, name, self)

    async def __call__(self, *args: Any, **options: Any) -> Any:
        """Fail, or call the method."""
        self.calls += 1
        if self.calls in self._numbers:
            raise away()
        return await self._inner(*args, **options)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let callers hear at once that the store is away."""
    monkeypatch.setattr("headrace.engine.retrying.RETRY_DELAYS", ())


async def grow(grower: Grower) -> int:
    """Look until the feed is whole; return how many looks failed."""
    failed = 0
    async with asyncio.timeout(10):
        while not grower.over:
            try:
                await grower.look()
            except StoreUnavailableError:
                failed += 1
    return failed


async def entries_of(app: App, feed: str) -> list[Entry]:
    """Return all entries of a feed."""
    return await app.runtime.stores.feeds.read_feed(feed, after=0, limit=10_000)


@pytest.mark.parametrize("numbers", [(1,), (2, 3), (4,)])
async def test_items_whose_append_failed_are_told_later(
    monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]
) -> None:
    """Each once, and the end behind them."""
    monkeypatch.setattr(batches, "PAGE", 7)
    app = shop()
    async with app:
        batch = await app.submit(app.find_task("halve"), range(20))
        await batch.cancel()
        failing = Failing(monkeypatch, app.runtime.stores.feeds, "append_entries", *numbers)
        grower = batches.BatchGrower(app.runtime.stores.inspect, app.runtime.feeds, batch.id)
        assert await grow(grower) == len(numbers)
        found = await entries_of(app, batches.batch_feed(batch.id))
    assert failing.calls >= max(numbers)
    assert [entry.type for entry in found] == ["item"] * 20 + ["closed"]
    assert len({entry.key for entry in found}) == 21


async def test_the_end_of_a_batch_has_the_counts_of_its_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed items that run again while it is counted are told of when their round ends."""
    app, failed = shop(), set[int]()

    @app.task(retry=Backoff.none())
    async def second(number: int) -> int:
        if number not in failed:
            failed.add(number)
            raise ValueError("not yet")
        return number

    async with app.worker():
        batch = await app.submit(second, range(3))
        await batch.wait("10s")
        inspect, counted = app.runtime.stores.inspect, list[Progress]()
        count = inspect.batch_progress

        async def count_late(batch_id: UUID) -> Progress:
            if not counted:
                await batch.retry_failed()
            counted.append(await count(batch_id))
            return counted[-1]

        monkeypatch.setattr(inspect, "batch_progress", count_late)
        grower = batches.BatchGrower(inspect, app.runtime.feeds, batch.id)
        assert await grower.look()
        assert not grower.over
        await batch.wait("10s")
        await grow(grower)
        found = await entries_of(app, batches.batch_feed(batch.id))
    assert [entry.type for entry in found] == ["item"] * 3 + ["round"] + ["item"] * 3 + ["closed"]
    closed = json.loads(found[-1].data)
    assert (closed["round"], closed["succeeded"], closed["failed"]) == (2, 3, 0)


@pytest.mark.parametrize("place", ["read_nodes", "append_entries"])
@pytest.mark.parametrize("numbers", [(1,), (2, 3)])
async def test_nodes_that_could_not_be_read_or_told_are_told_later(
    monkeypatch: pytest.MonkeyPatch, place: str, numbers: tuple[int, ...]
) -> None:
    """Every node that ended, and the end of the run behind them."""
    monkeypatch.setattr(runs, "SLICE", 3)
    app = shop()
    async with app.worker():
        run = await app.start("halves", 4)
        await run.result(timeout="10s")
        stores = app.runtime.stores
        nodes = {node.path for node in await stores.runs.read_nodes(run.id) if not node.path.endswith("@")}
        failing = Failing(monkeypatch, stores.runs if place == "read_nodes" else stores.feeds, place, *numbers)
        assert await grow(runs.RunGrower(app.runtime.means, app.runtime.feeds, run.id)) == len(numbers)
        found = await entries_of(app, runs.run_feed(run.id))
    assert failing.calls > max(numbers)
    assert {f"node/{path}" for path in nodes} | {"ended"} == {entry.key for entry in found}
    assert [entry.type for entry in found] == ["node"] * len(nodes) + ["ended"]


async def test_a_look_at_what_is_large_ends_before_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next one goes on where it was: items of a batch, and nodes of a run."""
    monkeypatch.setattr(batches, "PAGE", 2)
    monkeypatch.setattr(batches, "MOST_PAGES", 3)
    monkeypatch.setattr(runs, "SLICE", 2)
    monkeypatch.setattr(runs, "MOST_SLICES", 2)
    app = shop()
    async with app.worker():
        batch, run = await app.submit(app.find_task("halve"), range(20)), await app.start("halves", 4)
        await batch.wait("10s")
        await run.result(timeout="10s")
        means, hub = app.runtime.means, app.runtime.feeds
        growers: list[tuple[Grower, str]] = [
            (batches.BatchGrower(app.runtime.stores.inspect, hub, batch.id), batches.batch_feed(batch.id)),
            (runs.RunGrower(means, hub, run.id), runs.run_feed(run.id)),
        ]
        for grower, feed in growers:
            assert await grower.look()
            assert (grower.behind, grower.over) == (True, False)
            assert 0 < len(await entries_of(app, feed)) <= 6
            assert await grow(grower) == 0
            assert not grower.behind
        assert len(await entries_of(app, growers[0][1])) == 21
        told = await entries_of(app, growers[1][1])
        nodes = [node for node in await app.runtime.stores.runs.read_nodes(run.id) if not node.path.endswith("@")]
    assert [entry.type for entry in told] == ["node"] * len(nodes) + ["ended"]


class Large:
    """A grower that has so much to tell that it is never done."""

    def __init__(self) -> None:
        self.over, self.behind, self.looks = False, True, 0

    async def look(self) -> bool:
        """Tell a part."""
        self.looks += 1
        await asyncio.sleep(0)
        return True


class Small(Large):
    """A grower that is done at once."""

    async def look(self) -> bool:
        """Tell all there is."""
        self.over, self.behind = True, False
        return await super().look()


async def test_a_small_feed_does_not_wait_for_large_ones() -> None:
    """It has its turn between their looks, and they go on without a pause."""
    async with App("memory://") as app:
        growing, large, small = Growing(app.runtime.waiters), Large(), Small()
        async with growing.grown("a", lambda: large), growing.grown("b", Large):
            await wait_until(lambda: large.looks > 3)
            async with growing.grown("c", lambda: small) as task, asyncio.timeout(5):
                await task
            assert small.looks == 1
            before = large.looks
            await wait_until(lambda: large.looks > before + 50, timedelta(seconds=2))
        await growing.close()
