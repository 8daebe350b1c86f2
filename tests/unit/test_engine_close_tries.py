"""How often a busy worker asks whether a batch is done."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Backoff
from headrace.model.batch import BatchOutcome, ClosePolicy
from headrace.model.job import Claim, ClaimedJob
from tests.unit.engine_app import QUICK, quick_app

ITEMS = 400


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Note each batch that somebody tries to close."""
    from headrace.stores.memory.batch_store import MemoryBatchStore

    asked: list[UUID] = []
    close = MemoryBatchStore.close_batches

    async def noted(self: Any, batch_ids: Sequence[UUID]) -> Any:
        asked.extend(batch_ids)
        return await close(self, batch_ids)

    monkeypatch.setattr(MemoryBatchStore, "close_batches", noted)
    return asked


def busy_app(fails: int | None = None) -> App:
    """Return an app with ten slots whose task gives way once, and fails for one number."""
    app = quick_app(concurrency=10)

    @app.task(retry=Backoff.none())
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        if number == fails:
            raise ValueError(number)
        return number

    return app


async def test_a_batch_is_not_asked_about_while_the_worker_still_runs_some_of_it(tries: list[UUID]) -> None:
    """A drain of 400 items by ten slots asks a few times, not once for each statement."""
    app = busy_app()
    async with app.worker():
        batch = await app.submit(app.find_task("work"), range(ITEMS))
        assert (await batch.wait()).outcome is BatchOutcome.SUCCEEDED
    assert 1 <= len(tries) < ITEMS / 20


async def test_a_failure_is_asked_about_at_once(tries: list[UUID]) -> None:
    """What fails may be more than the policy allows: the batch is stopped while the worker still runs items of it."""
    app = busy_app(fails=0)
    async with app.worker():
        batch = await app.submit(app.find_task("work"), range(ITEMS * 10), policy=ClosePolicy.fail_fast())
        assert (await batch.wait()).outcome is BatchOutcome.FAILED
        assert (await batch.progress()).succeeded < ITEMS * 10


async def test_a_batch_cancelled_while_its_last_job_is_put_back_is_closed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Putting back a job of an unknown task ends it when it was cancelled meanwhile: that may close its batch."""
    patient = replace(QUICK, recovery=replace(QUICK.recovery, aggregate_interval=timedelta(minutes=1)))
    new, old = quick_app(), quick_app(settings=patient)

    @new.task
    async def added_later(number: int) -> int:
        return number

    old.task(name="known")(lambda: None)
    async with new, old:
        old.runtime.stores = new.runtime.stores
        batch = await new.submit(added_later, [1])
        jobs = new.runtime.stores.jobs
        claim = jobs.claim_jobs

        async def claim_and_cancel(wanted: Claim) -> list[ClaimedJob]:
            claimed = await claim(wanted)
            if claimed:
                await batch.cancel()
            return claimed

        monkeypatch.setattr(jobs, "claim_jobs", claim_and_cancel)
        async with old.worker():
            assert (await batch.wait(10)).outcome is BatchOutcome.CANCELLED
