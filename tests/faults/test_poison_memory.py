"""A job that eats memory, among 63 neighbours in one worker, under a bound that kills as the kernel does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Batch, JobHandle
from headrace.model.job import JobState
from tests.faults.checker import check
from tests.faults.memory_bound import Bound, memory_bound
from tests.faults.site import Site, WorkerProcess
from tests.faults.tasks import eat_memory, effect, neighbour
from tests.waiting import wait_until

NEIGHBOURS = 63
#: Bytes: room for a worker and a few children, not for one more than that.
LIMIT = 450_000_000
OTHERS = 200


@pytest.fixture
def bound() -> Iterator[Bound]:
    """Return the bound of the test."""
    with memory_bound(LIMIT) as bound:
        yield bound


def start_bounded(site: Site, bound: Bound) -> WorkerProcess:
    """Start a worker that has room for the poison and all its neighbours, under the bound."""
    worker = site.start_worker("--queue", f"default:{NEIGHBOURS + 1}", "--queue", "others:4")
    bound.add(worker.pid)
    return worker.wait_until_started()


async def crash_twice(site: Site, bound: Bound, suspects: int) -> None:
    """Let the poison take two workers along: the first with every neighbour, the second with those still there."""

    def holding() -> bool:
        # The others end in the second worker before it crashes.
        return len(site.effects("start")) == 2 * (NEIGHBOURS + 1) and (
            len(site.effects("effect")) == NEIGHBOURS - suspects
        )

    first = start_bounded(site, bound)
    await wait_until(lambda: len(site.effects("start")) == NEIGHBOURS + 1)
    site.open("eat-1")
    assert await asyncio.to_thread(first.wait) == -9
    second = start_bounded(site, bound)
    await wait_until(holding)
    site.open("eat-2")
    assert await asyncio.to_thread(second.wait) == -9


async def assert_convicted_alone(app: App, poison: JobHandle[None], lost: int) -> None:
    """Assert that the poison is a dead letter, after two crashes with its neighbours and three alone.

    Workers that were lost beside their children, `lost` of them, may have run it too: that counts for nothing.
    """
    dead = await app.runtime.stores.inspect.get_job(poison.id)
    assert dead is not None
    assert dead.error is not None
    assert (dead.state, dead.error.kind, dead.failures) == (JobState.FAILED, "poison", 0)
    records = await app.runtime.stores.inspect.get_attempts(poison.id)
    kinds = [(record.outcome, record.error.kind if record.error else "") for record in records]
    assert kinds[:2] == [("crashed", "worker_lost")] * 2
    alone = [kind for kind in kinds[2:] if kind != ("crashed", "worker_lost")]
    assert alone == [("crashed", "executor_crashed")] * 2 + [("failed", "poison")]
    assert len(kinds) == dead.crashes <= 5 + lost


class LastWorker:
    """The worker that is to convict the poison, started again where the kernel took it beside a child.

    It may: what a child held that it has just killed is there a moment longer, and then it looks for another process.
    """

    def __init__(self, site: Site, bound: Bound) -> None:
        self._site, self._bound = site, bound
        self._now = start_bounded(site, bound)
        self.lost = 0

    def keep(self) -> None:
        """Start it again if it is gone."""
        if self._now.process.poll() is not None:
            assert self._now.process.returncode == -9
            self.lost += 1
            self._now = start_bounded(self._site, self._bound)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("suspects", [8, pytest.param(NEIGHBOURS, marks=pytest.mark.slow)])
async def test_a_job_that_eats_memory_is_convicted_alone(bound: Bound, site: Site, app: App, suspects: int) -> None:
    """It takes its worker along twice, then dies alone three times: a dead letter. All 63 neighbours succeed.

    None of them is charged a failure, though some or all were running in both crashes and are as suspect as it is;
    and while the suspects take their turns in children the other jobs of the worker go on.
    """
    async with app:
        poison = await eat_memory.enqueue()
        items = [{"number": number, "crashes": 2 if number < suspects else 1} for number in range(NEIGHBOURS)]
        neighbours = await app.submit(neighbour, items, spread=True)
        await crash_twice(site, bound, suspects)
        last = LastWorker(site, bound)
        loop = asyncio.get_running_loop()
        began_at = loop.time()

        async def ended(batch: Batch[Any]) -> bool:
            last.keep()
            progress = await batch.progress()
            return progress.done == progress.total

        others = await app.submit(effect, range(1_000, 1_000 + OTHERS), queue="others")
        await wait_until(lambda: ended(others), timedelta(seconds=60))
        others_took = loop.time() - began_at
        await wait_until(lambda: ended(neighbours), timedelta(seconds=180))

        async def convicted() -> bool:
            last.keep()
            return (await poison.status()).final

        await wait_until(convicted, timedelta(seconds=60))
        print(
            f"{bound.name}: {bound.kills} kills, {last.lost} of the worker beside a child; {OTHERS} other jobs "
            f"meanwhile took {others_took:.2f} s, {suspects} suspects {loop.time() - began_at:.2f} s"
        )
        jobs = await app.runtime.stores.inspect.list_jobs(batch_id=neighbours.id, limit=100)
        assert [(job.state, job.failures) for job in jobs] == [(JobState.SUCCEEDED, 0)] * NEIGHBOURS
        await assert_convicted_alone(app, poison, last.lost)
    tries = [line["at"] for line in site.effects("start") if line.get("attempt", 0) > 2]
    ends = sorted(line["at"] for line in site.effects("effect") if line["number"] >= 1_000)
    assert ends[OTHERS // 2] < max(tries)
    assert bound.kills >= 5
    assert site.effects("survived") == []
    assert (await check(site)).clean
