"""Links that are cut, silent or slow, connections that are ended, and a server without free ones."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import pytest

from headrace.stores.postgres import open_postgres_stores
from headrace.stores.redis import RedisSite, create_namespace
from tests.backends.server import PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults.campaign import Campaign, campaign
from tests.faults.campaign_proxy import proxy_to
from tests.faults.conftest import CRASHING_EVERY_STORE, CRASHING_EVERY_STORE_SLOWLY, crashable_valkey
from tests.faults.links import PostgresLinks, links_to, watched
from tests.faults.site import RECOVERY, Site
from tests.waiting import wait_until

SEED = int(os.environ.get("FAULTS_SEED", "1"))
#: After a fault that leaves the server up.
RESUMED = timedelta(seconds=10)
#: Connections that a server without many has.
FEW = 40


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


@CRASHING_EVERY_STORE
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_five_hundred_answers_cut_off_after_the_commit(fragile_site: Site) -> None:
    """Nothing is lost or doubled, and no submit is refused, where the word of a commit never arrives."""
    await cut_answers(fragile_site, 500)


@CRASHING_EVERY_STORE_SLOWLY
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


@CRASHING_EVERY_STORE
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


async def end_connections(site: Site, times: int) -> None:
    """End a random connection every 200 ms."""
    async with links_to(site) as links, campaign(site, SEED) as run:
        await run.workers(3)
        run.load(4, pause=0.05)
        run.tally.plan("connection ended", times)
        every = time.monotonic()
        for _ in range(times):
            ours = await wait_until(links.ours)
            if await links.cut(run.random.choice(sorted(ours))):
                run.tally.fire("connection ended")
            every += 0.2
            await wait_until(lambda until=every: time.monotonic() >= until)  # type: ignore[misc]
        await run.goes_on(RESUMED)
        await run.observe()
        await run.reach_least()
        verdict = await run.verdict()
    assert verdict.clean, verdict


@CRASHING_EVERY_STORE
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_three_hundred_connections_ended_at_random(fragile_site: Site) -> None:
    """An operator, or a failover, that ends connections costs nobody a job, and no connection stays behind."""
    await end_connections(fragile_site, 300)


class Crowd(Protocol):
    """Clients that take what connections a server has."""

    async def take(self) -> bool:
        """Take a connection; return whether there was one."""
        ...

    async def end_others(self) -> int:
        """End the connections of the system, and take each at once; return how many there were."""
        ...

    async def leave(self) -> None:
        """Give all back."""
        ...


class PostgresCrowd:
    """Clients of PostgreSQL."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._taken: list[asyncpg.Connection] = []

    async def take(self) -> bool:
        """Take a connection; return whether there was one."""
        try:
            self._taken.append(await asyncpg.connect(self._server.dsn))
        except (asyncpg.PostgresError, OSError):
            return False
        return True

    async def end_others(self) -> int:
        """Terminate those that bear our name."""
        links = PostgresLinks(self._taken[0])
        ours = await links.ours()
        for number in ours:
            await links.cut(number)
            await self.take()
        return len(ours)

    async def leave(self) -> None:
        """Give all back."""
        await asyncio.gather(*(connection.close() for connection in self._taken))


class RedisCrowd:
    """Clients of a Redis server, which tells those too many so and closes."""

    def __init__(self, server: ValkeyServer) -> None:
        self._server = server
        self._taken: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def take(self) -> bool:
        """Take a connection; return whether there was one."""
        try:
            link = await asyncio.open_unix_connection(self._server.socket)
            number = await self._ask(link, "CLIENT ID")
        except (OSError, asyncio.IncompleteReadError):
            return False
        if not number.startswith(":"):
            link[1].close()
            return False
        self._taken[int(number[1:])] = link
        return True

    async def end_others(self) -> int:
        """Kill those that are not of the crowd."""
        link = next(iter(self._taken.values()))
        length = int((await self._ask(link, "CLIENT LIST")).removeprefix("$"))
        listed = (await link[0].readexactly(length + 2)).decode()
        others = {int(number) for number in re.findall(r"\bid=(\d+)", listed)} - self._taken.keys()
        for number in others:
            await self._ask(link, f"CLIENT KILL ID {number}")
            await self.take()
        return len(others)

    async def leave(self) -> None:
        """Give all back."""
        for _, writer in self._taken.values():
            writer.close()

    async def _ask(self, link: tuple[asyncio.StreamReader, asyncio.StreamWriter], command: str) -> str:
        """Send a command and return the first line of its answer."""
        link[1].write(f"{command}\r\n".encode())
        return (await link[0].readuntil(b"\r\n")).decode().strip()


@asynccontextmanager
async def crowded_site(store: str, folder: Path) -> AsyncIterator[tuple[Site, Crowd]]:
    """Give a system on a server with few connections, and clients for all of them."""
    (folder / "gates").mkdir()
    if store == "redis":
        with crashable_valkey("always", maxclients=str(FEW)) as valkey:
            await create_namespace(RedisSite(valkey.dsn, prefix="site"))
            async with watched(Site(valkey, "site", folder)) as site:
                yield site, RedisCrowd(valkey)
        return
    server = PostgresServer(durable=True, max_connections=FEW)
    try:
        await (await open_postgres_stores(server.dsn, schema="site", auto_migrate=True)).close()
        async with watched(Site(server, "site", folder)) as site:
            yield site, PostgresCrowd(server)
    finally:
        server.remove()


async def use_up_connections(store: str, folder: Path, seconds: float) -> None:
    """Leave the system without connections for a while, and see that it goes on soon after."""
    async with crowded_site(store, folder) as (site, crowd), campaign(site, SEED) as run:
        workers = await run.workers(2, HEADRACE_QUEUE_MAX_POOL_SIZE="5")
        run.load(4, pause=0.05)
        await run.more(200)
        run.tally.plan("all connections used up")
        until, left = time.monotonic() + seconds, -1
        try:
            while time.monotonic() < until:
                while await crowd.take():
                    continue
                left = await crowd.end_others()
                await asyncio.sleep(0.05)
            if left == 0:
                run.tally.fire("all connections used up")
        finally:
            await crowd.leave()
        await run.goes_on(RESUMED)
        assert [worker.process.exitcode for worker in workers] == [None] * 2
        await run.reach_least()
        verdict = await run.verdict()
    assert verdict.clean, verdict


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["postgres", "redis"])
async def test_connections_used_up_for_a_minute(store: str, tmp_path: Path) -> None:
    """Without connections workers stop in time and wait, submitters try again; all go on once there are some."""
    await use_up_connections(store, tmp_path, 60)
