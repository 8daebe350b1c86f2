"""JobStore.insert_jobs: what is accepted, and when it may run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.job import JobSpec, JobState, NewJob
from tests.conformance.scenario import ARGS, MINUTE, SECOND, SPEC, Scenario


async def test_ids_are_the_callers_in_the_callers_order(on: Scenario) -> None:
    """Jobs are stored under the ids they were given, and those come back in the order of the jobs."""
    jobs = [NewJob(SPEC, ARGS) for _ in range(20)]
    jobs.reverse()

    assert await on.stores.jobs.insert_jobs(jobs) == [job.id for job in jobs]


async def test_an_inserted_job_is_ready(on: Scenario) -> None:
    """A job without `run_at` is ready, never attempted, and carries the time of its insert."""
    [job_id] = await on.enqueue()

    job = await on.job(job_id)
    assert (job.state, job.attempt, job.failures, job.crashes) == (JobState.READY, 0, 0, 0)
    assert job.created_at == on.clock.now()
    assert (job.session, job.started_at, job.finished_at, job.run_at) == (None, None, None, None)


async def test_a_job_is_stored_as_it_was_specified(on: Scenario) -> None:
    """Task, queue, priority, attempts, timeout and arguments reach the worker unchanged."""
    spec = JobSpec("mail.send", "mail", priority=3, max_attempts=7, timeout=timedelta(seconds=90))
    args = '{"args":["é😀","\\\\u0041\\n"],"kwargs":{"n":1.5}}'
    [job_id] = await on.stores.jobs.insert_jobs([NewJob(spec, args)])

    view = await on.job(job_id)
    [job] = await on.claim(await on.worker(), queue="mail")
    assert (view.task, view.queue, view.priority, view.max_attempts) == ("mail.send", "mail", 3, 7)
    assert view.args == {"args": ["é😀", "\\u0041\n"], "kwargs": {"n": 1.5}}
    assert (job.id, job.task, job.queue, job.max_attempts) == (job_id, "mail.send", "mail", 7)
    assert job.timeout == timedelta(seconds=90)
    assert job.args == args


async def test_jobs_of_several_specifications_go_in_together(on: Scenario) -> None:
    """One call may hold jobs of different tasks, queues and times; each keeps its own."""
    later = on.clock.now() + MINUTE
    jobs = [NewJob(JobSpec("a", "left"), ARGS), NewJob(JobSpec("b", "right"), ARGS), NewJob(SPEC, ARGS, run_at=later)]
    ids = await on.stores.jobs.insert_jobs(jobs)

    views = [await on.job(job_id) for job_id in ids]
    assert [(view.task, view.queue) for view in views] == [("a", "left"), ("b", "right"), ("work", "default")]
    assert [view.state for view in views] == [JobState.READY, JobState.READY, JobState.SCHEDULED]


async def test_a_job_with_a_future_time_is_scheduled(on: Scenario) -> None:
    """A job whose `run_at` lies ahead is scheduled for it and not claimed before."""
    run_at = on.clock.now() + MINUTE
    [job_id] = await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=run_at)])
    on.clock.advance(MINUTE - SECOND)
    await on.stores.jobs.stage_jobs(limit=10)

    job = await on.job(job_id)
    assert (job.state, job.run_at) == (JobState.SCHEDULED, run_at)
    assert await on.claim(await on.worker()) == []


async def test_a_job_whose_time_has_passed_is_ready(on: Scenario) -> None:
    """A job whose `run_at` is not ahead of the store's clock can be claimed at once."""
    times = [on.clock.now() - MINUTE, on.clock.now()]
    ids = await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=time) for time in times])

    assert {job.id for job in await on.claim(await on.worker())} == set(ids)


async def test_nothing_is_an_insert_too(on: Scenario) -> None:
    """Inserting no jobs returns no ids."""
    assert await on.stores.jobs.insert_jobs([]) == []


async def test_many_jobs_go_in_at_once(on: Scenario) -> None:
    """Ten thousand jobs are inserted by one call."""
    ids = await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS) for _ in range(10_000)])

    [stats] = await on.stores.inspect.queue_stats()
    assert (len(set(ids)), stats.ready) == (10_000, 10_000)


async def test_a_retried_insert_finds_its_own_jobs(on: Scenario) -> None:
    """An insert sent again after its answer was lost adds only what is missing."""
    jobs = [NewJob(SPEC, ARGS) for _ in range(3)]
    await on.stores.jobs.insert_jobs(jobs[:2])

    assert await on.stores.jobs.insert_jobs(jobs, retrying=True) == [job.id for job in jobs]
    assert len(await on.stores.inspect.list_jobs()) == 3


async def test_a_retried_insert_leaves_a_running_job_alone(on: Scenario) -> None:
    """Sending an insert again takes nothing from the worker that runs the job meanwhile."""
    session = await on.worker()
    new = NewJob(SPEC, ARGS)
    await on.stores.jobs.insert_jobs([new])
    [job] = await on.claim(session)

    await on.stores.jobs.insert_jobs([new], retrying=True)
    assert (await on.job(new.id)).state is JobState.RUNNING
    assert await on.end(session, job) == [new.id]


async def test_a_retried_insert_recognises_a_finished_job(on: Scenario) -> None:
    """Sending an insert again never runs a job a second time that has finished meanwhile."""
    session = await on.worker()
    new = NewJob(SPEC, ARGS)
    await on.stores.jobs.insert_jobs([new])
    await on.end(session, *await on.claim(session), result="1")

    assert await on.stores.jobs.insert_jobs([new], retrying=True) == [new.id]
    assert await on.claim(session) == []
    assert (await on.job(new.id)).state is JobState.SUCCEEDED


@pytest.mark.parametrize("ending", ["finish", "return", "poison", "rescue", "rescue for good", "overdue", "cancel"])
async def test_a_late_duplicate_changes_nothing_final(on: Scenario, ending: str) -> None:
    """An id inserted again after its job ended is refused, or leaves without a trace however it ends."""
    job = NewJob(replace(SPEC, at_most_once=ending == "rescue for good", timeout=MINUTE), ARGS)
    await on.stores.jobs.insert_jobs([job])
    session = await on.worker()
    [first] = await on.claim(session)
    await on.end(session, first, state=JobState.READY, charged=True)
    await on.end(session, *await on.claim(session), result="1")
    final, [failed, _] = await on.job(job.id), await on.stores.inspect.get_attempts(job.id)
    assert await on.stores.jobs.insert_jobs([job]) == [job.id]

    for _ in range(5):
        await end_again(on, ending, job.id)
    last = await on.worker()
    await on.end(last, *await on.claim(last), result="3")
    assert await on.job(job.id) == final
    assert (await on.stores.inspect.get_attempts(job.id))[0] == failed
    assert await on.claim(await on.worker()) == []
    assert await on.stores.inspect.list_jobs(state=JobState.RUNNING) == []


async def end_again(on: Scenario, ending: str, job_id: UUID) -> None:
    """Let the job of a late duplicate, if there is one, end or go back once in some way."""
    session = await on.worker(lease=SECOND)
    if ending == "cancel":
        await on.stores.control.cancel_job(job_id)
        return
    jobs = await on.claim(session)
    if ending == "finish":
        assert await on.end(session, *jobs, state=JobState.FAILED, charged=True) == [job.id for job in jobs]
    elif ending == "return":
        await on.end(session, *jobs, state=JobState.READY, charged=True)
        await on.end(session, *await on.claim(session), result="2")
    elif ending == "poison":
        await on.end(session, *jobs, state=JobState.READY, lone_crash=True)
    elif ending == "overdue":
        await on.stores.jobs.fail_overdue_jobs(grace=-2 * MINUTE, limit=10, term=await on.term(SECOND))
    on.clock.advance(2 * SECOND)
    await on.stores.jobs.rescue_jobs(limit=10)
