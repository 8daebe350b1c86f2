"""A Ray cluster of two nodes under attack: killed processes, nodes and drivers. Nothing is lost, no step done twice."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.handles import JobHandle
from headrace.model.errors import JobFailedError
from headrace.model.job import JobState
from tests.backends.ray import RayCluster, why_not
from tests.faults.farm_tasks import app, climb, deadly, effect, once, paid_then
from tests.faults.ray_site import RaySite, ray_site_on
from tests.faults.site import LEASE
from tests.unit.engine_app import until_final, view_of
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there can be a cluster")

#: From a death until the job runs elsewhere.
TAKEOVER = LEASE + timedelta(seconds=10)
#: Jobs of the tasks run on the second node.
SECOND = """
[ray.resources.default]
custom = ["second=0.1"]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Start a cluster whose first node is for drivers."""
    with RayCluster() as cluster:
        cluster.start_node(cpus=1)
        yield cluster


@pytest.fixture
async def site(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RaySite]:
    """Set a place on it up, and see to its second node."""
    second(cluster)
    async with ray_site_on(cluster, tmp_path, monkeypatch, SECOND) as site:
        yield site


def second(cluster: RayCluster, *, more: bool = False) -> str:
    """Return a second node that is alive, or one more."""
    if more or len(cluster.nodes) == 1 or not cluster.lives(cluster.nodes[-1]):
        cluster.start_node("--resources", '{"second": 1}', cpus=2)
    return cluster.nodes[-1]


async def kinds(job: JobHandle[Any]) -> list[str]:
    """Return how the attempts of a job ended."""
    attempts = await app.runtime.stores.inspect.get_attempts(job.id)
    return [one.error.kind for one in attempts if one.error is not None]


async def test_a_killed_process_costs_no_step(site: RaySite, cluster: RayCluster) -> None:
    """kill -9 of the process that runs a job: it runs again, uncharged, and its step is not done again."""
    site.start_worker()
    async with app:
        job = await paid_then.enqueue(1, "gate")
        [line] = await wait_until(lambda: site.effects("hold"))
        cluster.kill([line["pid"]])
        killed = time.monotonic()
        await wait_until(lambda: len(site.effects("hold")) == 2, TAKEOVER)
        assert time.monotonic() - killed < TAKEOVER.total_seconds()
        site.open("gate")
        view = await until_final(app, job)
        assert (view.state, view.failures, view.crashes, view.attempt) == (JobState.SUCCEEDED, 0, 1, 2)
        assert await kinds(job) == ["executor_crashed"]
        # What Ray says of it is a record as any other; but for its core, which writes by itself.
        [said] = await wait_until(lambda: [line for line in site.logs().splitlines() if "A worker died" in line])
        assert (json.loads(said)["logger"], json.loads(said)["level"]) == ("ray", "warning")
    foreign = [line for line in site.logs().splitlines() if not line.startswith("{")]
    assert [line for line in foreign if ".cc:" not in line] == []
    assert (site.counts("paid"), site.counts("done")) == ({1: 1}, {1: 1})


@pytest.mark.slow
async def test_a_killed_node_costs_no_step(site: RaySite, cluster: RayCluster) -> None:
    """kill -9 of the raylet: what ran there runs again on another node, and nothing is charged."""
    site.start_worker()
    async with app:
        job = await paid_then.enqueue(1, "gate")
        once_only = await once.enqueue(2, "gate")
        await wait_until(lambda: len(site.effects("hold")) == 2)
        victim = cluster.nodes[-1]
        second(cluster, more=True)
        cluster.kill_node(victim)
        killed = time.monotonic()
        with pytest.raises(JobFailedError, match="executor_lost"):
            await once_only.result(TAKEOVER.total_seconds())
        await wait_until(lambda: len(site.effects("hold", 1)) == 2, TAKEOVER)
        assert time.monotonic() - killed < TAKEOVER.total_seconds()
        site.open("gate")
        view = await until_final(app, job)
        assert (view.state, view.failures, view.crashes) == (JobState.SUCCEEDED, 0, 0)
        assert set(await kinds(job)) == {"executor_lost"}
    assert (site.counts("paid"), site.counts("done"), len(site.effects("hold", 2))) == ({1: 1}, {1: 1}, 1)


async def test_a_killed_driver_costs_no_step(site: RaySite, cluster: RayCluster) -> None:
    """kill -9 of the worker: another one runs its job, uncharged, and Ray ends what it had sent."""
    site.start_worker()
    async with app:
        job = await paid_then.enqueue(1, "gate")
        once_only = await once.enqueue(2, "gate")
        await wait_until(lambda: len(site.effects("hold")) == 2)
        [line] = site.effects("hold", 1)
        cluster.kill(cluster.pids("headrace worker"))
        killed = time.monotonic()
        site.start_worker()
        with pytest.raises(JobFailedError, match="executor_lost"):
            await once_only.result(TAKEOVER.total_seconds())
        await wait_until(lambda: len(site.effects("hold", 1)) == 2, TAKEOVER)
        assert time.monotonic() - killed < TAKEOVER.total_seconds()
        await wait_until(lambda: line["pid"] not in cluster.pids("ray::"))
        site.open("gate")
        view = await until_final(app, job)
        assert (view.state, view.failures, view.crashes) == (JobState.SUCCEEDED, 0, 0)
        assert await kinds(job) == ["executor_lost"]
    assert (site.counts("paid"), site.counts("done"), len(site.effects("hold", 2))) == ({1: 1}, {1: 1}, 1)


@pytest.mark.slow
async def test_a_job_that_kills_its_processes_is_a_poison(site: RaySite) -> None:
    """Three processes are enough, the cluster lives; one that stores a step in each attempt is none."""
    site.start_worker()
    async with app:
        with pytest.raises(JobFailedError, match="poison"):
            await (await deadly.enqueue(1)).result(60)
        assert await (await effect.enqueue(2)).result(20) == 4
        job = await climb.enqueue(4)
        assert await job.result(60) == 4
        view = await view_of(app, job)
        assert (view.crashes, view.failures, view.attempt) == (4, 0, 5)
    assert site.counts("run") == {1: 3, 2: 1}


@pytest.mark.slow
async def test_the_whole_cluster_goes_away_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process of Ray is killed, which ends its drivers: the supervisor starts others, and the job runs again."""
    with RayCluster() as cluster:
        cluster.start_node(cpus=1)
        async with ray_site_on(cluster, tmp_path, monkeypatch) as site, app:
            supervisor = site.start("worker", "--json", "--processes", "2")
            job = await paid_then.enqueue(1, "gate")
            await wait_until(lambda: site.effects("hold"))
            cluster.kill_node(cluster.nodes[0])
            cluster.kill(cluster.pids("gcs_server"))
            cluster.nodes.clear()
            await wait_until(lambda: "the next one starts in" in site.logs(), 9 * TAKEOVER)
            cluster.start_node(cpus=1)
            await wait_until(lambda: len(site.effects("hold")) == 2, 3 * TAKEOVER)
            site.open("gate")
            view = await until_final(app, job)
            assert (view.state, view.failures, view.crashes) == (JobState.SUCCEEDED, 0, 0)
            assert supervisor.poll() is None
        assert (site.counts("paid"), site.counts("done")) == ({1: 1}, {1: 1})


@pytest.mark.slow
async def test_the_node_of_the_worker_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker connects by way of another node of its machine; what it had sent runs again, uncharged."""
    with RayCluster() as cluster:
        cluster.start_node(cpus=1)
        async with ray_site_on(cluster, tmp_path, monkeypatch) as site, app:
            worker = site.start_worker()
            job = await paid_then.enqueue(1, "gate")
            await wait_until(lambda: site.effects("hold"))
            cluster.start_node(cpus=1)
            cluster.kill_node(cluster.nodes[0])
            await wait_until(lambda: len(site.effects("hold")) == 2, 3 * TAKEOVER)
            site.open("gate")
            view = await until_final(app, job)
            assert (view.state, view.failures, view.crashes, worker.poll()) == (JobState.SUCCEEDED, 0, 0, None)
