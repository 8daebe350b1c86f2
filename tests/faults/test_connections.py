"""Links that are cut, silent or slow, backends that are terminated, and a server without free connections."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.stores.postgres import open_postgres_stores
from tests.backends.server import PostgresServer
from tests.faults.campaign import Campaign, campaign
from tests.faults.campaign_proxy import proxy_to
from tests.faults.links import watched
from tests.faults.site import RECOVERY, Site
from tests.waiting import wait_until

SEED = int(os.environ.get("FAULTS_SEED", "1"))
#: After a fault that leaves the server up.
RESUMED = timedelta(seconds=10)
VICTIMS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace' ORDER BY pid"


async def cut_answers(site: Site, cuts: int) -> None:
    """Lose the answers to so many commits of workers and submitters."""
    async with proxy_to(site, SEED) as proxy, campaign(site, SEED) as run:
        run.dsn = proxy.dsn
        await run.workers(3)
        run.load(4, pause=0.05)
        run.tally.plan("answer to a commit cut off", cuts)
        proxy.cut_share = 0.1
        await wait_until(lambda: proxy.cuts >= cuts, timedelta(seconds=3 * cuts), message="the cuts")
        proxy.cut_share = 0.0
        run.tally.fire("answer to a commit cut off", min(proxy.cuts, cuts))
        await run.goes_on(RESUMED)
        await run.observe()
        await run.reach_least()
        verdict = await run.verdict()
    assert verdict.clean, verdict


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_five_hundred_answers_cut_off_after_the_commit(fragile_site: Site) -> None:
    """Nothing is lost or doubled, and no submit is refused, where the word of a commit never arrives."""
    await cut_answers(fragile_site, 500)


async def test_a_worker_behind_a_half_open_link_stops_in_time(fragile_site: Site) -> None:
    """A worker that hears nothing more stops its handlers before its lease ends; later it goes on, with a new one."""
    async with proxy_to(fragile_site, SEED) as proxy, campaign(fragile_site, SEED) as run:
        await run.workers(2)
        run.dsn = proxy.dsn
        cut = await run.worker(concurrency=4).started()
        run.dsn = fragile_site.server.dsn
        run.load(1, pause=0.05)
        for number in range(12):
            run.client(f"long-{number}", "long")
        await wait_until(lambda: long_ones(run, cut.pid, "start"))
        run.tally.plan("half-open link")
        proxy.silent = True
        silent_at = time.time()
        run.tally.fire("half-open link")
        stopped = await wait_until(lambda: long_ones(run, cut.pid, "stopped"))
        leases = {str(row["id"]): row["expires_at"].timestamp() for row in (await run.tables()).sessions}
        for line in stopped:
            assert silent_at < line["at"] < leases[line["session"]]
        proxy.silent = False
        proxy.close_all()
        lost = {line["session"] for line in stopped}
        await wait_until(
            lambda: any(line["pid"] == cut.pid and line.get("session", *lost) not in lost for line in run.effects()),
            RECOVERY,
        )
        verdict = await run.verdict(least=False)
    assert verdict.clean, verdict


def long_ones(run: Campaign, pid: int, event: str) -> list[dict[str, Any]]:
    """Return the lines of long jobs that a process ran."""
    long_jobs = {job for line in run.acknowledged() if line["operation"] == "long" for job in line["jobs"]}
    return [
        line for line in run.effects() if line["pid"] == pid and line["event"] == event and line["job"] in long_jobs
    ]


@pytest.mark.slow
async def test_a_slow_link_costs_no_lease(fragile_site: Site) -> None:
    """With up to 600 ms per message and 20 kB/s a worker is slow, and keeps its session."""
    lease = {"HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "12s", "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "3s"}
    async with proxy_to(fragile_site, SEED) as proxy, campaign(fragile_site, SEED) as run:
        await run.workers(2)
        run.dsn = proxy.dsn
        slow = await run.worker(**lease).started()
        run.dsn = fragile_site.server.dsn
        run.tally.plan("slow link")
        proxy.delay, proxy.rate = 0.6, 20_000
        run.tally.fire("slow link")
        load = run.load(2, pause=0.05)
        before = len(run.effects())
        await wait_until(
            lambda: sum(line["pid"] == slow.pid and line["event"] == "end" for line in run.effects()[before:]) > 20
        )
        load.kill()
        sessions = [row for row in (await run.tables()).sessions if row["pid"] == slow.pid]
        verdict = await run.verdict(least=False)
    assert verdict.clean, verdict
    assert len(sessions) == 1


async def terminate_backends(site: Site, times: int) -> None:
    """Terminate a random connection every 200 ms."""
    async with campaign(site, SEED) as run:
        await run.workers(3)
        run.load(4, pause=0.05)
        operator = await asyncpg.connect(site.server.dsn)
        run.tally.plan("backend terminated", times)
        every = time.monotonic()
        for _ in range(times):
            pids = await wait_until(lambda: operator.fetch(VICTIMS))
            if await operator.fetchval("SELECT pg_terminate_backend($1)", run.random.choice(pids)["pid"]):
                run.tally.fire("backend terminated")
            every += 0.2
            await wait_until(lambda until=every: time.monotonic() >= until)  # type: ignore[misc]
        await run.goes_on(RESUMED)
        await operator.close()
        await run.observe()
        await run.reach_least()
        verdict = await run.verdict()
    assert verdict.clean, verdict


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_three_hundred_backends_terminated_at_random(fragile_site: Site) -> None:
    """An operator, or a failover, that ends connections costs nobody a job, and no connection stays behind."""
    await terminate_backends(fragile_site, 300)


@asynccontextmanager
async def crowded_site(folder: Path) -> AsyncIterator[Site]:
    """Give a system on a server with few connections."""
    server = PostgresServer(durable=True, max_connections=40)
    try:
        await (await open_postgres_stores(server.dsn, schema="site", auto_migrate=True)).close()
        (folder / "gates").mkdir()
        async with watched(Site(server, "site", folder)) as site:
            yield site
    finally:
        server.remove()


async def take_all(server: PostgresServer, taken: list[asyncpg.Connection]) -> None:
    """Take every connection of the server, those of the system as well, which are terminated for it."""
    with suppress(asyncpg.PostgresError, OSError):
        while True:
            taken.append(await asyncpg.connect(server.dsn))
    for row in await taken[0].fetch(VICTIMS):
        await taken[0].execute("SELECT pg_terminate_backend($1)", row["pid"])
        with suppress(asyncpg.PostgresError, OSError):
            taken.append(await asyncpg.connect(server.dsn))


async def use_up_connections(folder: Path, seconds: float) -> None:
    """Leave the system without connections for a while, and see that it goes on soon after."""
    async with crowded_site(folder) as site, campaign(site, SEED) as run:
        workers = await run.workers(2, HEADRACE_QUEUE_MAX_POOL_SIZE="5")
        run.load(4, pause=0.05)
        await run.more(200)
        run.tally.plan("all connections used up")
        taken: list[asyncpg.Connection] = []
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                await take_all(site.server, taken)
                await asyncio.sleep(0.05)
            ours = len(await taken[0].fetch(VICTIMS))
            if ours == 0:
                run.tally.fire("all connections used up")
        finally:
            await asyncio.gather(*(connection.close() for connection in taken))
        await run.goes_on(RESUMED)
        assert [worker.process.exitcode for worker in workers] == [None] * 2
        await run.reach_least()
        verdict = await run.verdict()
    assert verdict.clean, verdict


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_connections_used_up_for_a_minute(tmp_path: Path) -> None:
    """Without connections workers stop in time and wait, submitters try again; all go on once there are some."""
    await use_up_connections(tmp_path, 60)
