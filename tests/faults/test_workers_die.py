"""Workers that are killed, frozen, blocked and told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import pytest

from headrace import App
from headrace.engine.loops.heartbeat import EXIT_LEASE_LOST
from headrace.model.batch import BatchOutcome
from headrace.model.errors import JobFailedError
from headrace.model.job import JobState
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE_SLOWLY, may_unshare
from tests.faults.site import LEASE, RECOVERY, RECOVERY_HERE, Site, WorkerProcess
from tests.faults.tasks import block_loop, effect, effect_in_thread, report, wait_at, wait_once
from tests.waiting import wait_until

pytestmark = ON_EVERY_STORE_SLOWLY
#: So long that no test sees its end.
LONG_LEASE = "10m"


def started(site: Site, count: int = 1) -> Callable[[], bool]:
    """Return whether so many handlers have started."""
    return lambda: len(site.effects("start")) >= count


async def test_jobs_of_a_killed_worker_run_on_the_other_at_once(site: Site, app: App) -> None:
    """A worker that dies on this host is noticed by its process id: its jobs run elsewhere before its lease ends."""
    victim, other = site.start_workers(
        2, "--concurrency", "4", environ={"HEADRACE_QUEUE_VISIBILITY_TIMEOUT": LONG_LEASE}
    )
    async with app:
        batch = await app.submit(wait_at, [f"g{number}" for number in range(8)])
        await wait_until(started(site, 8))
        mine = {line["gate"] for line in site.effects("start") if line["pid"] == victim.pid}
        assert len(mine) == 4
        victim.kill()
        # The other worker's own handlers make room, and it takes what the dead one had.
        for line in site.effects("start"):
            if line["pid"] == other.pid:
                site.open(line["gate"])
        await wait_until(started(site, 12), RECOVERY_HERE)
        for gate in mine:
            site.open(gate)
        assert (await batch.wait(20)).outcome is BatchOutcome.SUCCEEDED
        attempts = [item.result async for item in batch.results()]
    assert sorted(attempts) == [1] * 4 + [2] * 4
    assert (await check(site)).clean


@pytest.mark.skipif(not may_unshare(), reason="needs pid namespaces")
async def test_jobs_of_a_worker_that_died_on_another_host_run_after_its_lease(site: Site, app: App) -> None:
    """Where nobody can look for the process, the end of the lease tells: the jobs run elsewhere, and not before."""
    victim = site.start_worker(isolated=True)
    victim.wait_until_started()
    async with app:
        job = await wait_at.enqueue("g")
        await wait_until(started(site))
        site.start_workers(1)
        loop = asyncio.get_running_loop()
        victim.kill()
        killed_at = loop.time()
        site.open("g")
        assert await job.result(RECOVERY) == 2
        # Its last heartbeat was at most one interval before.
        assert loop.time() - killed_at > LEASE.total_seconds() - 1
    assert (await check(site)).clean


async def test_an_at_most_once_job_of_a_killed_worker_is_failed(site: Site, app: App) -> None:
    """A job that may run only once is not run again: it fails as `worker_lost`."""
    site.start_workers(2)
    async with app:
        job = await wait_once.enqueue("g")
        await wait_until(started(site))
        [line] = site.effects("start")
        next(worker for worker in site.workers if worker.pid == line["pid"]).kill()
        with pytest.raises(JobFailedError, match="worker_lost"):
            await job.result(RECOVERY)
    assert len(site.effects("start")) == 1


async def stats_of(app: App, worker: WorkerProcess) -> dict[str, Any]:
    """Return what the worker reported with its last heartbeats, over all its sessions."""
    total: dict[str, Any] = {}
    for session in await app.runtime.stores.inspect.list_sessions():
        if session.process.pid == worker.pid:
            told = ((key, value) for key, value in session.stats.items() if not isinstance(value, str))
            total |= {key: max(value, total.get(key, 0)) for key, value in told}
    return total


async def test_a_frozen_worker_is_fenced(site: Site, app: App) -> None:
    """A worker frozen for three leases loses its job to another; what it writes after waking is refused and counted."""
    [victim] = site.start_workers(1)
    async with app:
        job = await block_loop.enqueue("g")
        await wait_until(started(site))
        victim.signal(signal.SIGSTOP)
        loop = asyncio.get_running_loop()
        frozen_at = loop.time()
        site.start_workers(1)
        assert await job.result(RECOVERY) == 2
        await wait_until(lambda: loop.time() - frozen_at > 3 * LEASE.total_seconds())
        before = (await app.runtime.stores.inspect.get_attempts(job.id), await job.status())
        # The handler of the first attempt ends before its worker can learn that the lease is over.
        site.open("g")
        victim.signal(signal.SIGCONT)
        await wait_until(lambda: len(site.effects("effect")) == 2)

        async def refused() -> bool:
            return bool((await stats_of(app, victim)).get("headrace.jobs.refused") == 1)

        await wait_until(refused)
        assert (await app.runtime.stores.inspect.get_attempts(job.id), await job.status()) == before
        # It works on, under a session of its own.
        assert await (await effect.enqueue(7)).result(20) == 7
    assert sorted(line["number"] for line in site.effects("effect") if line.get("gate")) == [1, 2]
    assert (await check(site)).clean


async def test_a_worker_whose_threads_outlive_its_lease_exits(site: Site, app: App) -> None:
    """Nothing stops a thread: a worker that lost its lease while one runs on ends itself, before its jobs run twice."""
    [worker] = site.start_workers(1)
    async with app:
        job = await effect_in_thread.enqueue(1, 4 * LEASE.total_seconds())
        await wait_until(started(site))
        worker.signal(signal.SIGSTOP)
        await stale(app)
        worker.signal(signal.SIGCONT)
        assert worker.wait() == EXIT_LEASE_LOST
        assert await job.status() in (JobState.READY, JobState.RUNNING)
    assert site.effects("effect") == []


async def stale(app: App) -> None:
    """Wait until the lease of the only session has ended."""

    async def ended() -> bool:
        return not any(session.alive for session in await app.runtime.stores.inspect.list_sessions())

    await wait_until(ended)


async def test_short_freezes_cost_nothing(site: Site, app: App) -> None:
    """A worker that is frozen again and again for less than its lease keeps it: nothing is run twice."""
    [victim] = site.start_workers(1, "--concurrency", "5")
    async with app:
        batch = await app.submit(effect, [{"number": number, "pause": 0.2} for number in range(60)], spread=True)
        for _ in range(12):
            victim.signal(signal.SIGSTOP)
            await asyncio.sleep(LEASE.total_seconds() / 12)
            victim.signal(signal.SIGCONT)
            await asyncio.sleep(0.1)
        await batch.wait(20)
        assert (await stats_of(app, victim)).get("headrace.sessions.lost", 0) == 0
    assert set(site.counts("start").values()) == {1}
    assert (await check(site)).clean


async def test_sigterm_lets_handlers_end(site: Site, app: App) -> None:
    """A worker that is told to stop ends its handlers, claims nothing more, records everything and exits with 0."""
    [worker] = site.start_workers(1, "--concurrency", "2")
    async with app:
        jobs = [await wait_at.enqueue(gate) for gate in ("a", "b", "c")]
        await wait_until(started(site, 2))
        worker.signal(signal.SIGTERM)
        await wait_until(lambda: "stopping" in worker.log())
        for gate in ("a", "b", "c"):
            site.open(gate)
        assert worker.wait() == 0
        views = [await app.runtime.stores.inspect.get_job(job.id) for job in jobs]
    assert [(view.state, view.attempt) for view in views if view] == [
        (JobState.SUCCEEDED, 1), (JobState.SUCCEEDED, 1), (JobState.READY, 0),
    ]  # fmt: skip


async def test_sigterm_releases_what_does_not_end(site: Site, app: App) -> None:
    """After the grace time running jobs, also those in threads, go back uncharged, and the process exits."""
    [worker] = site.start_workers(1, "--grace", "300ms")
    async with app:
        jobs: list[Any] = [await wait_at.enqueue("g"), await effect_in_thread.enqueue(1, 60.0)]
        await wait_until(started(site, 2))
        worker.signal(signal.SIGTERM)
        assert worker.wait(10) == 0
        views = [await app.runtime.stores.inspect.get_job(job.id) for job in jobs]
        assert [(view.state, view.attempt, view.failures, view.crashes) for view in views if view] == [
            (JobState.READY, 1, 0, 0)
        ] * 2
        site.open("g")
        site.start_workers(1)
        assert await jobs[0].result(20) == 2
        sessions = await app.runtime.stores.inspect.list_sessions()
    assert [session.alive for session in sessions] == [True, False]
    assert len(site.effects("stopped")) == 1


async def settled(app: App) -> None:
    """Wait until no job waits or runs."""

    async def empty() -> bool:
        stats = await app.runtime.stores.inspect.queue_stats()
        return not any(queue.ready + queue.running + queue.scheduled for queue in stats)

    await wait_until(empty)


async def test_a_campaign_of_kills_loses_nothing(site: Site, app: App) -> None:
    """Eight kills under load: every job ends once, every batch closes once, and no neighbour is convicted."""
    site.start_workers(2, "--concurrency", "10")
    async with app:
        batches = [
            await app.submit(
                effect, [{"number": 100 * part + number, "pause": 0.02} for number in range(100)], spread=True,
                on_close=report, key=f"part-{part}",
            )
            for part in range(8)
        ]  # fmt: skip
        kills = 0
        for kill in range(8):
            target = 30 * (kill + 1)
            await wait_until(lambda target=target: len(site.effects("start")) > target)  # type: ignore[misc]
            victims = [worker for worker in site.workers if worker.process.poll() is None]
            victims[0].kill()
            kills += 1
            site.start_workers(1, "--concurrency", "10")
        for batch in batches:
            assert (await batch.wait(40)).outcome is BatchOutcome.SUCCEEDED
        await wait_until(lambda: len(site.effects("closed")) >= 8)
        await settled(app)
    verdict = await check(site)
    assert (verdict.clean, kills) == (True, 8), verdict
    assert set(site.counts("effect")) == set(range(800))
    # Cut in the middle: at most what ran. What had ended and was not yet recorded runs again besides: slots are freed
    # before the ack.
    cut = site.counts("start").total() - site.counts("effect").total()
    assert 0 < cut <= kills * 10
