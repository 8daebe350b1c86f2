"""PostgreSQL that crashes again and again under submitters and workers."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta

import pytest

from tests.faults.campaign import Campaign, campaign, crash, start_again
from tests.faults.site import Site

SEED = int(os.environ.get("FAULTS_SEED", "1"))
#: After PostgreSQL is up again jobs are acknowledged and run within this.
RESUMED = timedelta(seconds=10)


async def crash_often(run: Campaign, times: int) -> None:
    """Crash the server, all of it or its first process alone, and see that the system goes on each time."""
    for number in range(times):
        await run.more(1_000 // times + 5)
        how = (signal.SIGQUIT, signal.SIGKILL)[number % 2]
        run.tally.plan(f"PostgreSQL {how.name}")
        crash(run.site.server, how)
        run.tally.fire(f"PostgreSQL {how.name}")
        await asyncio.to_thread(start_again, run.site.server)
        await run.goes_on(RESUMED)
        await run.observe()


async def crashed(site: Site, times: int) -> None:
    """Expect a clean verdict after so many crashes, and that no worker gave up."""
    async with campaign(site, SEED) as run:
        workers = await run.workers(3)
        run.load(6, pause=0.02)
        await crash_often(run, times)
        assert [worker.process.exitcode for worker in workers] == [None] * 3
        verdict = await run.verdict()
    assert verdict.clean, verdict
    assert max(run.tally.recoveries) <= RESUMED.total_seconds()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_twenty_crashes_under_load_lose_nothing(fragile_site: Site) -> None:
    """What was acknowledged before a crash ends once, and submitters and workers go on by themselves within 10 s."""
    await crashed(fragile_site, 20)
