"""JobStore.stage_jobs: scheduled jobs that are due become ready."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from headrace.model.job import JobState, NewJob
from tests.conformance.scenario import ARGS, DAY, MINUTE, SECOND, SPEC, Scenario


async def schedule(on: Scenario, *delays: timedelta, queue: str = "default") -> list[UUID]:
    """Insert a job for each delay from now."""
    spec, now = replace(SPEC, queue=queue), on.clock.now()
    return await on.stores.jobs.insert_jobs([NewJob(spec, ARGS, run_at=now + delay) for delay in delays])


async def test_due_jobs_become_ready(on: Scenario) -> None:
    """A job is ready from its time on, to the second; one that is not due stays scheduled."""
    due, later = await schedule(on, MINUTE, MINUTE + SECOND)
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=10)

    assert await on.states([due, later]) == [JobState.READY, JobState.SCHEDULED]


async def test_staging_names_the_queues_that_gained_a_job(on: Scenario) -> None:
    """The answer names each queue that has a new ready job, and no other."""
    await schedule(on, SECOND, SECOND)
    await schedule(on, SECOND, queue="mail")
    await schedule(on, MINUTE, queue="slow")
    on.clock.advance(SECOND)

    assert await on.stores.jobs.stage_jobs(limit=10) == {"default", "mail"}
    assert await on.stores.jobs.stage_jobs(limit=10) == frozenset()


async def test_staging_moves_no_more_than_its_limit(on: Scenario) -> None:
    """A sweep moves at most its limit, those that are due longest first; the next one goes on."""
    ids = await schedule(on, 3 * SECOND, 1 * SECOND, 2 * SECOND)
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=2)

    assert await on.states(ids) == [JobState.SCHEDULED, JobState.READY, JobState.READY]
    await on.stores.jobs.stage_jobs(limit=2)
    assert await on.states(ids) == [JobState.READY] * 3


async def test_jobs_are_claimed_in_the_order_of_their_times(on: Scenario) -> None:
    """Jobs staged by one late sweep are claimed by their due times, and before jobs that came after those."""
    third, first, second = await schedule(on, 3 * SECOND, 1 * SECOND, 2 * SECOND)
    on.clock.advance(4 * SECOND)
    [newest] = await on.enqueue()
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=10)

    claimed = [job.id for job in await on.claim(await on.worker())]
    assert claimed == [first, second, third, newest]


async def test_a_cancelled_job_is_not_staged(on: Scenario) -> None:
    """A scheduled job that was cancelled stays cancelled when its time comes."""
    [job_id] = await schedule(on, SECOND)
    await on.stores.control.cancel_job(job_id)
    on.clock.advance(SECOND)

    assert await on.stores.jobs.stage_jobs(limit=10) == frozenset()
    assert await on.states([job_id]) == [JobState.CANCELLED]


async def test_concurrent_sweeps_stage_each_job_once(on: Scenario) -> None:
    """Sweeps of several workers at once leave every due job ready, and each is claimed once."""
    ids = await schedule(on, *[SECOND] * 100)
    on.clock.advance(SECOND)
    await asyncio.gather(*(on.stores.jobs.stage_jobs(limit=30) for _ in range(4)))
    await on.stores.jobs.stage_jobs(limit=100)

    claimed = [job.id for job in await on.claim(await on.worker(lease=DAY))]
    assert sorted(claimed) == sorted(ids)
