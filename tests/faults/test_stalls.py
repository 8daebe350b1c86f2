"""Workers that stand still without dying: frozen, blocked in their loop, or inside a C call that keeps the GIL."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import time
from uuid import UUID

import pytest

from headrace import App, Task
from headrace.engine.loops.heartbeat import EXIT_LEASE_LOST
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE_SLOWLY
from tests.faults.site import LEASE, RECOVERY, Site, WorkerProcess
from tests.faults.tasks import effect, hold_gil, hold_gil_in_thread, match_for_long, sleep_in_loop
from tests.faults.test_workers_die import started, stats_of
from tests.waiting import wait_until

pytestmark = ON_EVERY_STORE_SLOWLY
#: Leases that a stall lasts.
LEASES = 5
#: Seconds of a stall: five leases, in which another worker takes the job over, and a busy machine.
STALL = LEASES * 1.6
#: A worker that is to lose its lease soon.
QUICKLY = {"HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "1s", "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "300ms"}
#: A worker that is to keep it, also on a busy machine.
SAFELY = {"HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "2s", "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "400ms"}


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_hundred_short_freezes_cost_nothing(site: Site, app: App) -> None:
    """A worker frozen a hundred times, each for up to half its lease, keeps it: no job is run twice."""
    lengths = random.Random(3)
    [victim] = site.start_workers(1, "--concurrency", "5")
    site.start_workers(1, "--concurrency", "1")
    async with app:
        batch = await app.submit(effect, [{"number": number, "pause": 0.2} for number in range(2_000)], spread=True)
        for _ in range(100):
            victim.signal(signal.SIGSTOP)
            await asyncio.sleep(lengths.uniform(0.05, LEASE.total_seconds() / 2))
            victim.signal(signal.SIGCONT)
            await asyncio.sleep(0.1)
        left = 2_000 - len(site.effects("effect"))
        print(f"{left} jobs are left after the last freeze")
        # There were some all the time; others help with the rest.
        assert left > 0
        site.start_workers(1, "--concurrency", "20")
        await batch.wait(60)
        assert (await stats_of(app, victim)).get("headrace.sessions.lost", 0) == 0
    assert site.counts("start") == dict.fromkeys(range(2_000), 1)
    assert (await check(site)).clean


async def test_a_handler_that_blocks_the_loop_for_five_leases_keeps_its_job(site: Site, app: App) -> None:
    """The heartbeat has a thread of its own: nothing is run again, and the worker says where its loop is blocked."""
    blocked = site.start_worker("--concurrency", "1", environ=SAFELY).wait_until_started()
    async with app:
        job = await sleep_in_loop.enqueue(LEASES * 2.0)
        await wait_until(started(site))
        # Another one is ready to take the job over.
        [other] = site.start_workers(1)
        assert await job.result(RECOVERY) == 1
        assert await (await effect.enqueue(7)).result(20) == 7
        stats = await stats_of(app, blocked)
        assert (stats.get("headrace.sessions.lost", 0), stats["headrace.loop.blocked"]) == (0, 1)
    assert re.search(r"event loop has been blocked for [\d.]+ s, at \S*tasks\.py:\d+ in sleep_in_loop", blocked.log())
    assert "blocked" not in other.log()
    assert [line["number"] for line in site.effects("start")] == [1, 7]
    assert (await check(site)).clean


async def run_elsewhere(app: App, site: Site, job_id: UUID) -> None:
    """Assert that a job was run again once, by another process, and that the late ending changed nothing."""
    records = await app.runtime.stores.inspect.get_attempts(job_id)
    assert [record.outcome for record in records] == ["crashed", "succeeded"]
    runs = site.effects("start")
    assert [line["number"] for line in runs] == [1, 2]
    assert runs[0]["pid"] != runs[1]["pid"]
    view = await app.runtime.stores.inspect.get_job(job_id)
    assert view is not None
    assert (view.attempt, view.failures, view.crashes, view.result) == (2, 0, 1, 2)


async def stall(
    site: Site, app: App, task: Task[..., int], argument: float
) -> tuple[WorkerProcess, WorkerProcess, UUID]:
    """Let a worker stall inside a C call, see its job run elsewhere meanwhile, and wait until the call has ended."""
    # The other one is ready, and takes nothing before the victim has the job.
    [other] = site.start_workers(1, environ={"HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "1m"})
    other.signal(signal.SIGSTOP)
    victim = site.start_worker("--concurrency", "1", environ=QUICKLY).wait_until_started()
    job = await task.enqueue(argument)
    await wait_until(started(site))
    other.signal(signal.SIGCONT)
    assert await job.result(RECOVERY) == 2
    elsewhere = [line["number"] for line in site.effects("effect")]
    assert elsewhere == [2], "the call was over before the job ran elsewhere"
    await wait_until(lambda: len(site.effects("effect")) == 2 or victim.process.poll() is not None)
    await run_elsewhere(app, site, job.id)
    return victim, other, job.id


async def test_a_call_that_keeps_the_gil_for_five_leases_loses_its_job(site: Site, app: App) -> None:
    """No thread helps against it: the job runs elsewhere once, the late ending is refused, and the worker works on."""
    async with app:
        victim, other, job_id = await stall(site, app, hold_gil, STALL)

        async def refused() -> bool:
            return bool((await stats_of(app, victim)).get("headrace.jobs.refused") == 1)

        await wait_until(refused)
        await run_elsewhere(app, site, job_id)
        other.kill()
        # Under a session of its own.
        assert await (await effect.enqueue(7)).result(20) == 7
        assert [line["pid"] for line in site.effects("effect") if line["number"] == 7] == [victim.pid]
        assert (await stats_of(app, victim))["headrace.sessions.lost"] == 1
    assert (await check(site)).clean


@pytest.mark.slow
async def test_a_thread_that_keeps_the_gil_loses_its_job(site: Site, app: App) -> None:
    """From a thread it is no other: one run elsewhere, and the worker works on or ends to be started again."""
    async with app:
        victim, other, _ = await stall(site, app, hold_gil_in_thread, STALL)
        other.kill()
        job = await effect.enqueue(7)
        if victim.process.poll() is not None:
            assert victim.wait() == EXIT_LEASE_LOST
            site.start_workers(1)
        assert await job.result(20) == 7
    assert (await check(site)).clean


@pytest.mark.slow
async def test_a_pattern_that_runs_away_loses_its_job(site: Site, app: App) -> None:
    """What a program does by mistake: a regular expression that needs several leases, and never lets go of the GIL."""
    letters, needed = 18, 0.0
    while needed < LEASES:
        letters += 1
        began_at = time.process_time()
        re.match(r"(a+)+$", "a" * letters + "b")
        needed = time.process_time() - began_at
    async with app:
        await stall(site, app, match_for_long, letters)
    assert (await check(site)).clean
