"""What lives in actors of a Ray cluster: a cache that all its processes share, and the agents of an app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.settings import load_settings
from tests.backends.ray import RayCluster, why_not
from tests.faults.ray_ops_tasks import TYPE, app, figures, get, put
from tests.faults.ray_site import RaySite, ray_site_on
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there can be a cluster")

APP = "tests.faults.ray_ops_tasks:app"
LONG = timedelta(seconds=60)
AGENTS = 'agents = true\n[events]\nmember_lease = "3s"\n'


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Start a cluster of one node."""
    with RayCluster() as cluster:
        cluster.start_node(cpus=3)
        yield cluster


@pytest.fixture
async def site(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RaySite]:
    """Set a place on it up, for the app with agents and caches."""
    async with ray_site_on(cluster, tmp_path, monkeypatch, AGENTS) as site:
        environ = {name: value for name, value in site.environment.items() if name.startswith("HEADRACE_")}
        monkeypatch.setattr(app, "settings", load_settings(environ=environ), raising=False)
        yield site


async def test_a_cache_is_shared_by_all_processes_and_its_loss_is_a_miss(site: RaySite) -> None:
    """What one puts others find, within the bounds; after the actor's death nothing is known, and it begins again."""
    site.start("worker", "--json", app=APP)
    async with app:
        await (await put.enqueue("a", "naïve 记忆")).result(60)
        found = [await (await get.enqueue("a")).result(40) for _ in range(2)]
        handles = [await get.enqueue("a") for _ in range(12)]
        found += [await handle.result(40) for handle in handles]
        assert {text for _, text in found} == {"naïve 记忆"}
        assert len({pid for pid, _ in found}) > 1
        await (await put.enqueue("b", "2")).result(30)
        await (await get.enqueue("a")).result(30)
        await (await put.enqueue("c", "3")).result(30)
        assert [(await (await get.enqueue(key)).result(30))[1] for key in "abc"] == ["naïve 记忆", None, "3"]
        assert await (await figures.enqueue()).result(30) == {"entries": 2, "hits": 17, "misses": 1, "evicted": 1}
        assert site.cluster is not None
        site.cluster.kill(site.cluster.pids("ray::CacheHolder"))
        assert (await (await get.enqueue("a")).result(30))[1] is None

        async def back() -> bool:
            await (await put.enqueue("a", "again")).result(30)
            return bool((await (await get.enqueue("a")).result(30))[1] == "again")

        await wait_until(back, LONG)


async def test_agents_in_an_actor_lose_nothing_when_it_is_killed(site: RaySite) -> None:
    """The worker runs none of them. Killed in mid-run and run again by Ray, each event is counted once."""
    site.start("worker", "--json", app=APP)
    cluster = site.cluster
    assert cluster is not None
    async with app:
        for number in range(80):
            await app.emit(TYPE, {"number": number}, aggregate_id=f"n-{number}")
        await wait_until(lambda: _true(len(site.effects("handled")) >= 10), LONG)
        [pid] = {line["pid"] for line in site.effects("handled")}
        before = cluster.pids("ray::AgentsActor")
        assert [pid] == before
        cluster.kill(before)
        await wait_until(lambda: _true(len(site.counts("counted")) == 80), LONG)
        assert set(site.counts("counted").values()) == {1}
        assert len({line["pid"] for line in site.effects("handled")}) == 2
        [worker] = cluster.pids("headrace worker")
        cluster.run("kill", "-TERM", str(worker))
        await wait_until(lambda: _true(worker not in cluster.pids(".")), LONG)
        await wait_until(lambda: _true(not cluster.pids("ray::AgentsActor")), LONG)
        assert "the actor of the agents has ended in order" in site.logs(), site.logs()
        assert "go on although they were told" not in site.logs()


@pytest.mark.slow
async def test_another_worker_keeps_the_agents_when_the_first_dies(site: RaySite) -> None:
    """The actor ends with the driver that has made it, and is made anew."""
    site.start("worker", "--json", app=APP)
    cluster = site.cluster
    assert cluster is not None
    async with app:
        await app.emit(TYPE, {"number": 0}, aggregate_id="n-0")
        await wait_until(lambda: _true(site.counts("counted") == {0: 1}), LONG)
        [first] = cluster.pids("headrace worker")
        site.start("worker", "--json", app=APP)
        await wait_until(lambda: _true(site.logs().count("connected to the Ray cluster") == 2), LONG)
        cluster.kill([first])
        for number in range(1, 20):
            await app.emit(TYPE, {"number": number}, aggregate_id=f"n-{number}")
        await wait_until(lambda: _true(len(site.counts("counted")) == 20), LONG)
        assert set(site.counts("counted").values()) == {1}
        assert len({line["pid"] for line in site.effects("handled")}) == 2


async def _true(value: bool) -> bool:
    return value
