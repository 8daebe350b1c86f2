"""Workers that are replaced one after another under load, as a deployment does it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.faults.campaign import CAPPED_APP, Actor, Campaign, campaign
from tests.faults.conftest import CRASHING_EVERY_STORE
from tests.faults.site import Site
from tests.waiting import wait_until

pytestmark = CRASHING_EVERY_STORE
SEED = int(os.environ.get("FAULTS_SEED", "1"))
WORKERS = 3
#: Every second worker has time for the slow jobs, the others release them.
GRACES = ["5s", "200ms"]
#: From SIGTERM to the end of a worker: its grace, what it still records, and a busy machine.
LONGEST_END = timedelta(seconds=20)
#: For a slow job to be started, behind what the clients sent before it.
LONGEST_WAIT = timedelta(seconds=120)


def start(run: Campaign, number: int) -> Actor:
    """Start the n-th worker; every third one works under caps."""
    grace = GRACES[number % 2]
    if number % WORKERS:
        return run.worker(HEADRACE_WORKER_SHUTDOWN_GRACE=grace)
    return run.worker(app=CAPPED_APP, HEADRACE_WORKER_SHUTDOWN_GRACE=grace)


async def roll(run: Campaign, restarts: int) -> None:
    """Replace workers in turn, each while it runs a slow job if it is one that gets them."""
    workers = [await start(run, number).started() for number in range(WORKERS)]
    run.load(2, pause=0.1)
    for number in range(restarts):
        former, replacement = workers.pop(0), start(run, WORKERS + number)
        workers.append(await replacement.started())
        await run.more(20)
        if number % WORKERS:
            await occupy(run, number, former.pid)
        run.tally.plan("worker told to stop")
        former.signal(signal.SIGTERM)
        await former.ended(LONGEST_END)
        assert former.process.exitcode == 0, former.log()
        run.tally.fire("worker told to stop")
        await run.observe()


async def occupy(run: Campaign, number: int, pid: int) -> None:
    """Send slow jobs until a process has one under way: others may take all of a call."""
    for again in range(20):
        token = f"slow-{number}-{again}"
        run.client(token, "slow")
        await wait_until(lambda sent=token: runs_slow_job(run, pid) or are_taken(run, sent), LONGEST_WAIT)  # type: ignore[misc]
        if runs_slow_job(run, pid):
            return
    raise AssertionError(f"process {pid} took none of the slow jobs of 20 calls")


def are_taken(run: Campaign, token: str) -> bool:
    """Return whether all jobs of a call were started."""
    jobs = {job for line in run.acknowledged() if line["token"] == token for job in line["jobs"]}
    return bool(jobs) and jobs <= {line.get("job") for line in run.effects()}


def runs_slow_job(run: Campaign, pid: int) -> bool:
    """Return whether a process has a slow job under way."""
    slow_jobs = {job for line in run.acknowledged() if line["operation"] == "slow" for job in line["jobs"]}
    mine = [line for line in run.effects() if line["pid"] == pid and line.get("job") in slow_jobs]
    return any({line["job"]: line["event"] == "start" for line in mine}.values())


def fails_once(row: Mapping[str, Any]) -> bool:
    """Return whether a job fails by itself, at its first attempt."""
    if row["task"].endswith("guarded"):
        return bool(json.loads(row["args"])["args"][0] % 4 == 0)
    return bool(row["task"].endswith("flaky"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("restarts", [4, pytest.param(20, marks=pytest.mark.slow)])
async def test_rolling_restarts_charge_nobody(fragile_site: Site, restarts: int) -> None:
    """Each worker ends its jobs or releases them, uncharged, and exits with 0; nothing is lost or run beside itself."""
    async with campaign(fragile_site, SEED) as run:
        await roll(run, restarts)
        await run.reach_least()
        # Other attempts stop because they fail by themselves.
        released = [line for line in run.effects() if line["event"] == "stopped" and line["task"].endswith("mark")]
        verdict = await run.verdict()
        tables = await run.tables()
    assert verdict.clean, verdict
    print(f"  {len(released)} attempts were released")
    assert len(released) >= restarts // 4
    assert all(fails_once(row) and row["failures"] == 1 for row in tables.final if row["failures"])
    assert {row["crashes"] for row in tables.final} == {0}
