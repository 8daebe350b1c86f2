"""A Redis server that is killed again and again under submitters and workers."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta

import pytest

from tests.faults.campaign import Campaign, campaign, crash, start_again
from tests.faults.checker import Verdict
from tests.faults.site import Site
from tests.waiting import wait_until

SEED = int(os.environ.get("FAULTS_SEED", "1"))
#: After the server is up again jobs are acknowledged and run within this.
RESUMED = timedelta(seconds=5)
EVERY_SETTING = pytest.mark.parametrize("own_valkey", ["always", "everysec"], indirect=True)


async def kill_often(run: Campaign, times: int, jobs: int) -> None:
    """Kill the server that often while jobs are submitted, and see that the system goes on each time."""
    for _ in range(times):
        await run.more(jobs // times + 5)
        run.tally.plan("Valkey killed")
        crash(run.site.server, signal.SIGKILL)
        run.tally.fire("Valkey killed")
        await asyncio.to_thread(start_again, run.site.server)
        await run.goes_on(RESUMED)
        await run.observe()


async def killed(site: Site, times: int, jobs: int = 1_000) -> Verdict:
    """Return the verdict after so many kills, and expect that no worker gave up."""
    async with campaign(site, SEED) as run:
        workers = await run.workers(3)
        run.load(6, pause=0.1)
        await kill_often(run, times, jobs)
        assert [worker.process.exitcode for worker in workers] == [None] * 3
        verdict = await run.verdict()
    assert max(run.tally.recoveries) <= RESUMED.total_seconds()
    return verdict


@pytest.mark.parametrize("own_valkey", ["always", pytest.param("everysec", marks=pytest.mark.slow)], indirect=True)
async def test_kills_under_load_lose_nothing(fragile_redis: Site) -> None:
    """What was acknowledged before a kill -9 ends once, with fsync at each commit and each second alike."""
    verdict = await killed(fragile_redis, 3)
    assert verdict.clean, verdict


@pytest.mark.slow
@pytest.mark.timeout(600)
@EVERY_SETTING
async def test_twenty_kills_under_load_lose_nothing(fragile_redis: Site) -> None:
    """The same for some minutes."""
    verdict = await killed(fragile_redis, 20)
    assert verdict.clean, verdict


async def test_workers_die_with_the_server(fragile_redis: Site) -> None:
    """Workers killed while the server is away are found by their leases once it is back: their jobs run elsewhere."""
    async with campaign(fragile_redis, SEED) as run:
        workers = await run.workers(4)
        run.load(6, pause=0.1)
        for number in range(3):
            await run.more(350)
            run.tally.plan("Valkey and a worker killed")
            crash(run.site.server, signal.SIGKILL)
            workers[number].kill()
            await asyncio.to_thread(start_again, run.site.server)
            run.tally.fire("Valkey and a worker killed")
            await run.goes_on(RESUMED)
            workers.append(await run.worker().started())
        verdict = await run.verdict()
    assert verdict.clean, verdict


async def test_a_checker_that_sees_a_loss_says_so(fragile_redis: Site) -> None:
    """An acknowledged job that is removed behind the store's back turns the verdict red: it proves something."""
    async with campaign(fragile_redis, SEED) as run:
        await run.workers(2)
        run.load(2, pause=0.02)
        await run.more(100)
        await run.observe()
        server = run.site.server
        jobs = {job.replace("-", "") for line in run.acknowledged() for job in line.get("jobs", ())}
        ended = "{site}:ended:succeeded:default"
        [digits, *_] = await wait_until(lambda: jobs.intersection(server.call("ZRANGE", ended, 0, -1).split()))
        server.call("DEL", f"{{site}}:job:{digits}")
        for name in ("jobs:default", "ended:succeeded:default"):
            server.call("ZREM", f"{{site}}:{name}", digits)
        verdict = await run.verdict(least=False)
    assert verdict.lost
