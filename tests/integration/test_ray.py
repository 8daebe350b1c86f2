"""Jobs on a Ray cluster: they end as anywhere else, and the store is the only one that knows it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from headrace.model.job import JobState
from tests.backends.ray import RayCluster, why_not
from tests.faults.farm_tasks import app, effect, emitting, end_with, here, in_thread, parked
from tests.faults.ray_site import RaySite, ray_site_on
from tests.integration.test_celery import ENDINGS
from tests.unit.engine_app import until_final
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there can be a cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Start a cluster of one node."""
    cluster = RayCluster()
    try:
        cluster.begin()
        cluster.start_node(cpus=2)
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
async def site(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RaySite]:
    """Set a place on it up."""
    async with ray_site_on(cluster, tmp_path, monkeypatch) as site:
        yield site


async def test_jobs_end_there_as_they_do_here(site: RaySite) -> None:
    """Results, outcomes, retries, steps, parking and events are those of any executor; a local queue stays local."""
    site.start_worker()
    async with app:
        assert await (await effect.enqueue(4)).result(40) == 8
        [line] = site.effects("run")
        driver = await (await here.enqueue()).result(30)
        assert line["pid"] != driver
        receipt, pid, attempt, last_try = await (await in_thread.enqueue(7)).result(30)
        assert (receipt, pid in {os.getpid(), driver}, attempt, last_try) == ("receipt 7", False, 1, False)
        for how, expected in ENDINGS.items():
            view = await until_final(app, await end_with.enqueue(how))
            ended = view.state, view.attempt, view.error.kind if view.error else "", view.crashes
            assert ended == (*expected, 0), how
        waiting = await parked.enqueue(1)

        async def left() -> bool:
            return (await waiting.status()) is JobState.PARKED

        await wait_until(left)
        await app.signal("farm-1", "go on")
        assert await waiting.result(30) == "go on"
        await (await emitting.enqueue(5)).result(30)
        assert app.runtime.stores.events is not None
        events = await app.runtime.stores.events.outbox.list_events(limit=10)
        assert [event.payload for event in events] == [{"number": 5}]
        batch = await app.submit(effect, range(100, 160))
        assert sorted([item.result async for item in batch.results()]) == [2 * number for number in range(100, 160)]
    assert set(site.counts("run").values()) == {1}
