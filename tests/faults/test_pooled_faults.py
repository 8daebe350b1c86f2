"""The whole way of a job through PgBouncer in transaction mode, while it, workers and backends behind it die."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from random import Random
from uuid import UUID

import asyncpg
import pytest

from headrace import App, Batch
from headrace.model.batch import BatchOutcome
from headrace.model.errors import StoreUnavailableError
from tests.backends.pooler import PGBOUNCER, PgBouncer
from tests.faults.checker import check
from tests.faults.links import clients
from tests.faults.site import Site
from tests.faults.tasks import effect, report
from tests.faults.test_workers_die import settled
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(
    PGBOUNCER is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)"
)

LANES = 4


@pytest.fixture
def pooler(site: Site) -> Iterator[PgBouncer]:
    """Run a pooler with fewer connections than its clients have."""
    pooler = PgBouncer(site.server)
    pooler.start()
    yield pooler
    pooler.stop()


class Load:
    """Submitters in lanes, who remember what was acknowledged and send again what was not, under its key."""

    def __init__(self) -> None:
        self.jobs: set[UUID] = set()
        self.numbers: set[int] = set()
        self.batches: list[Batch] = []
        self.refused = 0
        self.enough = asyncio.Event()

    async def run(self) -> None:
        """Enqueue until it is enough: single jobs and, now and then, a batch with a callback."""
        async with asyncio.TaskGroup() as lanes:
            for lane in range(LANES):
                lanes.create_task(self._lane(1_000_000 * (lane + 1)))

    async def _lane(self, number: int) -> None:
        while not self.enough.is_set():
            number += 20
            try:
                await self._send(number)
            except StoreUnavailableError:
                self.refused += 1
                number -= 20
                await asyncio.sleep(0.05)

    async def _send(self, number: int) -> None:
        if number % 100:
            self.jobs.add((await effect.options(key=str(number)).enqueue(number, 0.01)).id)
            self.numbers.add(number)
        else:
            items = range(number, number + 10)
            self.batches.append(await app_submit(items, key=str(number)))
            self.numbers.update(items)

    async def more(self, count: int) -> None:
        """Wait until so many more are acknowledged."""
        target = len(self.numbers) + count
        await wait_until(lambda: len(self.numbers) >= target)


async def app_submit(items: range, *, key: str) -> Batch:
    """Submit a batch with a callback."""
    return await effect.app.submit(effect, items, key=key, on_close=report)


async def end_backend(observer: asyncpg.Connection, spare: set[int], chance: Random) -> bool:
    """Terminate one backend behind the pooler; return whether there was one."""
    behind = sorted(await clients(observer) - spare)
    return bool(behind and await observer.fetchval("SELECT pg_terminate_backend($1)", chance.choice(behind)))


@pytest.mark.parametrize("rounds", [2, pytest.param(8, marks=pytest.mark.slow)])
async def test_nothing_is_lost_behind_a_pooler(
    site: Site, app: App, observer: asyncpg.Connection, pooler: PgBouncer, rounds: int
) -> None:
    """Workers killed, PgBouncer stopped and crashed, backends terminated: all acknowledged jobs end once."""
    through = {"HEADRACE_URL": pooler.dsn, "HEADRACE_QUEUE_POOLED": "true"}
    spare, load, chance, ended = await clients(observer), Load(), Random(rounds), 0
    app.settings = site.settings(**through)
    workers = site.start_workers(2, "--concurrency", "10", environ=through)
    async with app:
        running = asyncio.create_task(load.run())
        for turn in range(rounds):
            await load.more(100)
            # In threads: a client that stood still in a transaction would keep a connection behind the pooler.
            await asyncio.to_thread(pooler.stop, (signal.SIGTERM, signal.SIGKILL)[turn % 2])
            await asyncio.to_thread(pooler.start)
            await load.more(100)
            workers[0].kill()
            replacement = site.start_worker("--concurrency", "10", environ=through)
            workers = [*workers[1:], await asyncio.to_thread(replacement.wait_until_started)]
            for _ in range(5):
                await load.more(20)
                ended += await end_backend(observer, spare, chance)
        load.enough.set()
        await running
        for batch in load.batches:
            assert (await batch.wait(30)).outcome is BatchOutcome.SUCCEEDED
        await settled(app)
        assert [worker.process.poll() for worker in workers] == [None, None]
    print(
        f"{len(load.numbers)} acknowledged, {load.refused} refused, {ended} backends ended, {2 * rounds} other faults"
    )
    site.end()
    pooler.stop()
    verdict = await check(site, load.jobs)
    assert verdict.clean, verdict
    assert load.numbers <= set(site.counts("effect"))
    assert ended >= 4 * rounds
