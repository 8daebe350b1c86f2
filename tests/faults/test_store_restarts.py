"""PostgreSQL that crashes, restarts, or stays away, under workers and submitters."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from uuid import UUID

from headrace import App
from headrace.model.batch import BatchOutcome
from headrace.model.errors import StoreUnavailableError
from tests.faults.checker import check
from tests.faults.conftest import CRASHING_EVERY_STORE
from tests.faults.site import LEASE, RECOVERY, Site
from tests.faults.tasks import effect, report, wait_at
from tests.waiting import wait_until

pytestmark = CRASHING_EVERY_STORE


class Submitters:
    """Enqueue without a pause in four lanes, and remember every id that was acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: list[UUID] = []
        self.enough = asyncio.Event()

    async def run(self) -> None:
        """Enqueue until it is enough."""
        async with asyncio.TaskGroup() as lanes:
            for lane in range(1, 5):
                lanes.create_task(self._enqueue(100_000 * lane))

    async def _enqueue(self, number: int) -> None:
        while not self.enough.is_set():
            number += 1
            with contextlib.suppress(StoreUnavailableError):
                self.acknowledged.append((await effect.enqueue(number, 0.01)).id)

    async def more(self, count: int = 100) -> None:
        """Wait until so many more are acknowledged."""
        before = len(self.acknowledged)
        await wait_until(lambda: len(self.acknowledged) > before + count)


async def settled(app: App) -> bool:
    """Return whether no job waits or runs."""
    stats = await app.runtime.stores.inspect.queue_stats()
    return not any(queue.ready + queue.running + queue.scheduled for queue in stats)


async def test_restarts_under_load_lose_nothing(fragile_site: Site, app: App) -> None:
    """PostgreSQL crashes twice while jobs are enqueued and run: every acknowledged id ends once, soon after."""
    site, submitters = fragile_site, Submitters()
    workers = site.start_workers(2, "--concurrency", "10")
    async with app:
        batch = await app.submit(effect, range(200), on_close=report)
        running = asyncio.create_task(submitters.run())
        for _ in range(2):
            await submitters.more()
            site.server.stop(signal.SIGQUIT)
            await asyncio.to_thread(site.server.start)
        await submitters.more()
        submitters.enough.set()
        await running
        assert (await batch.wait(30)).outcome is BatchOutcome.SUCCEEDED
        await wait_until(lambda: settled(app), 2 * RECOVERY)
        assert [worker.process.poll() for worker in workers] == [None, None]
    verdict = await check(site, submitters.acknowledged)
    assert verdict.clean, verdict
    assert len(set(submitters.acknowledged)) == len(submitters.acknowledged) > 300


async def test_a_worker_without_its_store_stops_its_handlers_before_the_lease_ends(
    fragile_site: Site, app: App
) -> None:
    """While PostgreSQL is away a worker stops what it runs in time, waits, and goes on under a new session."""
    site = fragile_site
    site.start_workers(1)
    async with app:
        job = await wait_at.enqueue("g")
        await wait_until(lambda: site.effects("start"))
        loop = asyncio.get_running_loop()
        site.server.stop(signal.SIGQUIT)
        gone_at = loop.time()
        await wait_until(lambda: site.effects("stopped"))
        assert loop.time() - gone_at < LEASE.total_seconds()
        site.open("g")
        await asyncio.to_thread(site.server.start)
        assert await job.result(RECOVERY) == 2
        view = await app.runtime.stores.inspect.get_job(job.id)
        assert view is not None
        assert (view.failures, view.crashes) == (0, 1)
    assert (await check(site)).clean
