"""A job that eats memory, among 63 neighbours in one worker, under a bound that kills as the kernel does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headrace import App, JobHandle
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


async def assert_convicted_alone(app: App, poison: JobHandle[None]) -> None:
    """Assert that the poison is a dead letter, after two crashes with its neighbours and three alone."""
    dead = await app.runtime.stores.inspect.get_job(poison.id)
    assert dead is not None
    assert dead.error is not None
    assert (dead.state, dead.error.kind, dead.failures, dead.crashes) == (JobState.FAILED, "poison", 0, 5)
    records = await app.runtime.stores.inspect.get_attempts(poison.id)
    kinds = [(record.outcome, record.error.kind if record.error else "") for record in records]
    assert kinds == [("crashed", "worker_lost")] * 2 + [("crashed", "executor_crashed")] * 2 + [("failed", "poison")]


@pytest.mark.timeout(600)
@pytest.mark.slow
@pytest.mark.parametrize("suspects", [8, NEIGHBOURS])
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
        last = start_bounded(site, bound)
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        others = await app.submit(effect, range(1_000, 1_000 + OTHERS), queue="others")
        await others.wait(20)
        others_took = loop.time() - began_at
        assert not (await poison.status()).final
        await neighbours.wait(180)

        async def convicted() -> bool:
            return (await poison.status()).final

        await wait_until(convicted, timedelta(seconds=60))
        print(
            f"{bound.name}: {bound.kills} kills; {OTHERS} other jobs meanwhile took {others_took:.2f} s, "
            f"{suspects} suspects {loop.time() - began_at:.2f} s"
        )
        jobs = await app.runtime.stores.inspect.list_jobs(batch_id=neighbours.id, limit=100)
        assert [(job.state, job.failures) for job in jobs] == [(JobState.SUCCEEDED, 0)] * NEIGHBOURS
        await assert_convicted_alone(app, poison)
        assert last.process.poll() is None
    assert bound.kills >= 5
    assert site.effects("survived") == []
    assert (await check(site)).clean
