"""Batches that end on two workers at once, whose closer dies, or whose handler cannot be stopped."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from headrace import App
from headrace.engine.loops import aggregator, leadership
from headrace.model.batch import BatchOutcome, BatchState
from headrace.model.job import Claim, Completion, JobState
from headrace.model.session import NewSession, ProcessId
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE_SLOWLY
from tests.faults.site import RECOVERY, Site
from tests.faults.tasks import effect, report, stuck, wait_at
from tests.waiting import wait_until

pytestmark = ON_EVERY_STORE_SLOWLY


async def gap(app: App, batch_id: Any) -> timedelta:
    """Return the time from the last ending of a batch to its close, by the database's clock."""
    view = await app.batch(batch_id).wait(20)
    jobs = await app.runtime.stores.inspect.list_jobs(batch_id=batch_id, limit=1_000)
    assert view.closed_at is not None
    return view.closed_at - max(job.finished_at for job in jobs if job.finished_at is not None)


async def test_last_jobs_that_end_together_close_their_batch_once_and_soon(site: Site, app: App) -> None:
    """Both workers record a last job at the same moment: one close, one callback; seldom by the aggregator."""
    workers = site.start_workers(2, "--concurrency", "8")
    gaps = []
    async with app:
        for number in range(12):
            batch = await app.submit(wait_at, [f"g{number}"] * 16, on_close=report)
            await wait_until(lambda number=number: len(site.effects("start")) == 16 * (number + 1))  # type: ignore[misc]
            site.open(f"g{number}")
            gaps.append(await gap(app, batch.id))
        await wait_until(lambda: len(site.effects("closed")) == 12)

        async def quiet() -> bool:
            return not await app.runtime.stores.inspect.list_jobs(state=JobState.RUNNING)

        await wait_until(quiet)
    assert {line["pid"] for line in site.effects("effect")} == {worker.pid for worker in workers}
    print("a batch closes after its last job within", [round(each.total_seconds(), 3) for each in sorted(gaps)], "s")
    # The aggregator comes every second: it would close half of them later than that.
    assert sorted(gaps)[8] < timedelta(milliseconds=500), gaps
    assert (await check(site)).clean


async def test_the_aggregator_closes_a_batch_whose_closer_died(site: Site, app: App) -> None:
    """Endings that were recorded by a process that died before it could close: the leader closes, with the callback."""
    async with app:
        stores = app.runtime.stores
        batch = await app.submit(effect, range(10), on_close=report)
        dying = NewSession(ProcessId("gone", 1, 1), "gone", {"default": 10}, timedelta(hours=1))
        await stores.sessions.register_session(dying)
        claimed = await stores.jobs.claim_jobs(Claim(dying.id, "default", 10))
        done = [Completion(job.id, job.attempt, JobState.SUCCEEDED, batch_id=batch.id) for job in claimed]
        assert len(await stores.jobs.complete_jobs(dying.id, done)) == 10
        assert (await batch.view()).state is BatchState.SEALED
        site.start_workers(1)
        assert (await batch.wait(RECOVERY)).outcome is BatchOutcome.SUCCEEDED
        await wait_until(lambda: site.effects("closed"))

        async def quiet() -> bool:
            return not await stores.inspect.list_jobs(state=JobState.RUNNING)

        await wait_until(quiet)
    assert (await check(site)).clean


@pytest.mark.slow
async def test_another_process_leads_soon_after_the_leader_was_killed(site: Site, app: App) -> None:
    """When the leader is killed another process leads within 15 s, and does what only a leader does."""
    victim = site.start_worker().wait_until_started()
    async with app:
        stores = app.runtime.stores

        async def led() -> bool:
            return await stores.sessions.lead(uuid4(), lease=timedelta(milliseconds=1)) is None

        await wait_until(led)
        site.start_workers(1)
        victim.kill()
        loop = asyncio.get_running_loop()
        killed_at = loop.time()
        # Its only job is cancelled behind the engine's back: nobody but the aggregator closes it.
        batch = await app.submit(effect, [1], queue="nobody")
        [job] = await stores.inspect.list_jobs(batch_id=batch.id)
        await stores.control.cancel_job(job.id)
        await batch.wait(20)
        assert loop.time() - killed_at < 15


async def test_a_handler_that_cannot_be_stopped_is_taken_from_its_worker(
    site: Site, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler that holds its worker's loop beyond its timeout is ended by the leader and runs again elsewhere."""
    monkeypatch.setattr(aggregator, "OVERDUE_GRACE", timedelta(milliseconds=500))
    monkeypatch.setattr(leadership, "TERM_LEASE", timedelta(seconds=60))
    async with app.worker(queues={"other": 1}) as leader:
        await wait_until(lambda: leader._leadership.term)
        site.start_workers(1)
        job = await stuck.enqueue("g")
        await wait_until(lambda: site.effects("start"))
        site.start_workers(1)
        assert await job.result(RECOVERY) == 2
        records = await app.runtime.stores.inspect.get_attempts(job.id)
        assert [(record.outcome, record.error.kind if record.error else "") for record in records] == [
            ("failed", "timeout"), ("succeeded", ""),
        ]  # fmt: skip
        # The late ending of the first attempt changes nothing.
        site.open("g")
        again = await effect.enqueue(5)
        assert await again.result(20) == 5
        assert await app.runtime.stores.inspect.get_attempts(job.id) == records
