"""Claims whose answer is lost, caps in other queues, and streams under foreign transactions."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace import App
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob
from headrace.stores.memory.job_store import MemoryJobStore
from tests.waiting import wait_until


async def test_a_claim_whose_answer_was_lost_is_found_and_run(monkeypatch: Any) -> None:
    """Jobs that a claim took before its answer was lost run under the session that holds them."""
    app = App("memory://")
    ran: list[int] = []

    @app.task
    async def note(number: int) -> None:
        ran.append(number)

    claim_jobs, lost = MemoryJobStore.claim_jobs, []

    async def lose_the_first(self: MemoryJobStore, claim: Claim) -> list[ClaimedJob]:
        jobs = await claim_jobs(self, claim)
        if jobs and not lost:
            lost.extend(jobs)
            raise StoreUnavailableError
        return jobs

    monkeypatch.setattr(MemoryJobStore, "claim_jobs", lose_the_first)
    async with app.worker():
        batch = await app.submit(note, [1, 2, 3])
        await batch.wait("20s")
    assert lost
    assert sorted(ran) == [1, 2, 3]


async def test_a_capped_task_runs_on_another_queue_than_its_own() -> None:
    """A cap goes with its task, whichever queue a job waits in."""
    app = App("memory://")

    @app.task(concurrency=1)
    async def double(number: int) -> int:
        return 2 * number

    @app.task(queue="slow")
    async def other() -> None:
        return None

    async with app.worker(queues=["slow"]):
        handle = await double.options(queue="slow").enqueue(21)
        assert await handle.result("20s") == 42


async def test_each_item_is_streamed_once_however_often_the_stream_looks() -> None:
    """Items that were read before the cursor could pass them do not come again."""
    app = App("memory://")

    @app.task
    async def wait_a_little(number: int) -> int:
        await asyncio.sleep(0.01 * number)
        return number

    async with app.worker():
        batch = await app.submit(wait_a_little, range(20))
        indexes = [item.index async for item in batch.results()]
    assert sorted(indexes) == list(range(20))


async def test_found_jobs_count_against_the_slots(monkeypatch: Any) -> None:
    """After a lost answer no more is claimed than what is found leaves free."""
    app = App("memory://")
    gate, running, most = asyncio.Event(), 0, 0

    @app.task
    async def hold(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return number

    claim_jobs, lost = MemoryJobStore.claim_jobs, []

    async def lose_the_first(self: MemoryJobStore, claim: Claim) -> list[ClaimedJob]:
        assert claim.limit > 0
        jobs = await claim_jobs(self, claim)
        if jobs and not lost:
            lost.extend(jobs)
            raise StoreUnavailableError
        return jobs

    monkeypatch.setattr(MemoryJobStore, "claim_jobs", lose_the_first)
    async with app.worker(queues={"default": 4}):
        batch = await app.submit(hold, range(12))
        await wait_until(lambda: running == 4)
        gate.set()
        await batch.wait("20s")
    assert lost
    assert most == 4
