"""Very many jobs that fall due in the same second, as after an outage."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from headrace import App
from headrace.settings import Settings
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE
from tests.faults.links import Links
from tests.faults.site import Site
from tests.faults.tasks import mark, nap

#: Seconds that a job of another queue waits at most while the herd passes.
LONGEST_WAIT = 5.0
WORKERS = 2


@ON_EVERY_STORE
@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_a_herd_passes(site: Site, app: App, links: Links, count: int) -> None:
    """All run once; other queues wait at most 5 s meanwhile, and no worker opens more connections than it may."""
    waits: list[float] = []
    async with app:
        loop = asyncio.get_running_loop()
        due_at = datetime.now(UTC) + timedelta(seconds=3 + count / 10_000)
        batches = [
            await app.submit(mark, range(start, start + 10_000), run_at=due_at, queue="herd")
            for start in range(0, count, 10_000)
        ]
        before = len(await links.ours())
        queues = ("--queue", "herd:50", "--queue", "small:4")
        workers = [site.start_worker(*queues) for _ in range(WORKERS)]
        for worker in workers:
            await asyncio.to_thread(worker.wait_until_started)
        most, began_at = 0, loop.time()
        passing = asyncio.gather(*(batch.wait(300) for batch in batches))
        while not passing.done():
            enqueued_at = loop.time()
            await (await nap.options(queue="small").enqueue(0.0)).result(30)
            waits.append(loop.time() - enqueued_at)
            most = max(most, len(await links.ours()) - before)
        await passing
        took = loop.time() - began_at
    waits.sort()
    print(
        f"{count} jobs in {took:.1f} s; {len(waits)} others waited {waits[len(waits) // 2]:.3f} s in the middle and "
        f"{waits[-1]:.3f} s at most; {most} connections"
    )
    assert waits[-1] <= LONGEST_WAIT
    # The client of the test may open more of its own.
    assert most <= (WORKERS + 1) * Settings().queue.max_pool_size
    assert site.counts("start") == dict.fromkeys(range(count), 1)
    assert (await check(site)).clean
