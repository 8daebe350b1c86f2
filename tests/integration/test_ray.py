"""Jobs on a Ray cluster: they end as anywhere else, and the store is the only one that knows it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from headrace.model.errors import JobFailedError
from headrace.model.job import JobState
from tests.backends.ray import RAY, RayCluster, why_not
from tests.faults.farm_tasks import (
    app,
    effect,
    emitting,
    end_with,
    here,
    in_thread,
    paid_then,
    parked,
    spin,
    stubborn,
)
from tests.faults.ray_site import RaySite, ray_site_on
from tests.faults.site import LEASE
from tests.integration.test_celery import ENDINGS
from tests.unit.engine_app import until_final, view_of
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there can be a cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """Start a cluster of one node."""
    with RayCluster() as cluster:
        cluster.start_node(cpus=2)
        yield cluster


@pytest.fixture
def config() -> str:
    """More of its settings than all have."""
    return ""


@pytest.fixture
async def site(
    cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> AsyncIterator[RaySite]:
    """Set a place on it up."""
    async with ray_site_on(cluster, tmp_path, monkeypatch, config) as site:
        yield site


async def test_jobs_end_there_as_they_do_here(site: RaySite, cluster: RayCluster) -> None:
    """Results, outcomes, retries, steps, parking and events are those of any executor; a local queue stays local."""
    worker = site.start_worker()
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
            logs = await app.runtime.stores.inspect.attempt_logs(view.id)
            assert [log.attempt for log in logs] == list(range(1, view.attempt + 1))
            assert {line.message for log in logs for line in log.lines} == {f"ends with {how}"}
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
    cluster.run("kill", "-TERM", *map(str, cluster.pids("headrace worker")))
    await wait_until(lambda: worker.poll() is not None)
    assert worker.returncode == 0


async def test_large_values_and_files_go_by_reference(site: RaySite) -> None:
    """Arguments, results and files of several megabytes reach the node and come back; runs go node by node."""
    site.start_worker()
    async with app:
        run = await app.start("files", 3_000_000)
        result = await run.result("60s")
        assert (result["bytes"], result["text"]) == (3_000_000, 3_000_000)
        view = await app.runtime.stores.runs.get_run(run.id)
        assert view is not None
        assert (view.level, view.reason.split(",")[0]) == ("node_level", "task write_file passes a gate")
        doubles = await app.start("doubles", 5)
        assert await doubles.result("40s") == 20
    assert site.counts("run") == dict.fromkeys(range(5), 1)


@pytest.mark.slow
async def test_no_more_is_claimed_than_the_cluster_can_start(site: RaySite) -> None:
    """Jobs that find no room there stay ready, whichever of two workers looks; they get on when there is some."""
    site.start_worker()
    async with app:
        jobs = [await paid_then.enqueue(number, "gate") for number in range(5)]
        await wait_until(lambda: len(site.effects("hold")) == 2)
        site.start_worker()
        await wait_until(lambda: site.logs().count("connected to the Ray cluster") == 2)
        # It has looked at the store, and at the cluster, some times by then.
        since = time.monotonic()
        await wait_until(lambda: time.monotonic() > since + 2)
        [stats] = [one for one in await app.runtime.stores.inspect.queue_stats() if one.name == "default"]
        assert (stats.ready, stats.running) == (3, 2)
        site.open("gate")
        assert [await job.result(40) for job in jobs] == list(range(5))
    assert site.counts("hold") == dict.fromkeys(range(5), 1)


@pytest.mark.parametrize("config", ["[ray.resources.default]\nnum_cpus = 64\n"])
async def test_a_queue_that_fits_nowhere_waits_and_says_so(site: RaySite, cluster: RayCluster) -> None:
    """Its jobs stay ready; the log, `doctor` and `job explain` say what is missing."""
    site.start_worker()
    async with app:
        job = await effect.enqueue(1)
        said = "no node of the Ray cluster is large enough for a job of queue default (64 CPU)"
        await wait_until(lambda: said in site.logs())
        assert (await job.status()) is JobState.READY
    assert said in site.run("job", "explain", str(job.id))
    assert said in site.run("doctor")


async def test_a_cancelled_job_stops_there(site: RaySite, cluster: RayCluster) -> None:
    """Its handler is cancelled within moments, and its process waits for another job."""
    site.start_worker()
    async with app:
        job = await paid_then.enqueue(1, "never")
        [hold] = await wait_until(lambda: site.effects("hold"))
        await job.cancel()
        assert (await until_final(app, job)).state is JobState.CANCELLED
        await wait_until(lambda: hold["pid"] in cluster.pids("ray::IDLE"))
        assert await (await effect.enqueue(2)).result(30) == 4


@pytest.mark.slow
async def test_a_handler_that_does_not_end_is_ended_at_its_timeout(site: RaySite, cluster: RayCluster) -> None:
    """A thread that hears nothing ends with its process; so does a blocked event loop, also when it is cancelled."""
    site.start_worker()
    async with app:
        with pytest.raises(JobFailedError, match="timeout"):
            await (await stubborn.enqueue(1)).result(40)
        with pytest.raises(JobFailedError, match="timeout"):
            await (await spin.enqueue(4)).result(40)
        job = await spin.options(timeout="1h").enqueue(2)
        await wait_until(lambda: site.effects("hold", 2))
        await job.cancel()
        assert (await until_final(app, job)).state is JobState.CANCELLED
        pids = {line["pid"] for line in site.effects("hold")}
        await wait_until(lambda: not pids & set(cluster.pids("ray::")))
        assert await (await effect.enqueue(3)).result(30) == 6


async def test_secrets_of_the_settings_are_in_no_log_of_ray(site: RaySite, cluster: RayCluster) -> None:
    """The store's address travels with the calls, and not in what Ray writes down; nor do arguments."""
    site.start_worker()
    async with app:
        assert await (await effect.enqueue(4_711_4711)).result(40) == 9_422_9422
    logs = [path for path in (cluster.root / "r").glob("session_2*/logs/**/*") if path.is_file()]
    assert logs
    for path in logs:
        text = path.read_text(errors="replace")
        assert "47114711" not in text, path
        assert "postgresql://" not in text, path


@pytest.mark.slow
async def test_a_lease_is_kept_while_ray_runs(site: RaySite) -> None:
    """A job that takes three leases is run once."""
    site.start_worker()
    async with app:
        job = await paid_then.enqueue(1, "gate")
        [hold] = await wait_until(lambda: site.effects("hold"))
        await wait_until(lambda: time.time() > hold["at"] + 3 * LEASE.total_seconds())
        site.open("gate")
        assert await job.result(30) == 1
        assert (await view_of(app, job)).attempt == 1
    assert site.counts("hold") == {1: 1}


SHOP = """
import os
from headrace import App
app = App()
@app.task
async def where() -> list[str]:
    return [__file__, os.getcwd()]
"""


async def test_code_reaches_the_nodes(site: RaySite, tmp_path: Path) -> None:
    """`[ray] working_dir` is copied to a node: the handler runs out of the copy, and in it."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    with (site.root / "headrace.toml").open("a") as config:
        config.write(f'working_dir = "{folder}"\n')
    site.start("worker", "--json", app="shop:app", cwd=folder)
    enqueued = site.run("enqueue", "shop:app", "where", "{}", "--wait", folder=folder)
    assert "/runtime_resources/working_dir_files/" in enqueued, site.logs()
    assert str(folder) not in enqueued


WANTS = """
import sys, time
import ray
from headrace.executors.ray.asking import part_of
from headrace.executors.ray.cluster import Cluster, peek
from headrace.executors.ray.site import RaySite
cluster = Cluster(RaySite(sys.argv[1], "headrace", {}, "", ""))
cluster.connect()
# The head node has what calls are of: the first call need not wait for that.
assert cluster._function._last_export_cluster_and_job == ray._private.worker.global_worker.current_cluster_and_job
put, now = ray.experimental.internal_kv._internal_kv_put, time.time()
put("wants:another", part_of([{"CPU": 1.0}] * 2, now), namespace="headrace")
put("wants:one that died", part_of([{"CPU": 1.0}] * 9, now - 3600), namespace="headrace")
cluster.want([{"CPU": 1.0}] * 5)
[node] = cluster.look()
assert [node] == peek(sys.argv[1]), node
print(node.total["CPU"])
cluster.disconnect()
"""


async def test_what_is_wanted_reaches_the_autoscaler(cluster: RayCluster) -> None:
    """With what other workers want; and what one sees who is no driver is what a driver sees."""
    environ = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    assert cluster.run(sys.executable, "-c", WANTS, cluster.address, environ=environ).strip() == "2.0"
    await wait_until(lambda: "{'CPU': 1.0}: 7 from request_resources()" in cluster.run(RAY, "status"))
