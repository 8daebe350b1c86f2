"""JobStore.complete_jobs: endings that send a job back, and what they count."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from headrace.model.job import Completion, JobError, JobState
from tests.conformance.scenario import DAY, MINUTE, SECOND, Scenario

ERROR = JobError("TimeoutError", "too slow", "trace")


async def test_a_delayed_job_waits_for_its_time(on: Scenario) -> None:
    """A job sent back with a delay is scheduled for then, and becomes ready when it is due."""
    session = await on.worker(lease=DAY)
    _, job = await on.start(session)
    await on.end(session, job, state=JobState.SCHEDULED, delay=MINUTE, charged=True)

    view = await on.job(job.id)
    assert (view.state, view.run_at) == (JobState.SCHEDULED, on.clock.now() + MINUTE)
    on.clock.advance(MINUTE - SECOND)
    await on.stores.jobs.stage_jobs(limit=10)
    assert await on.claim(session) == []
    on.clock.advance(SECOND)
    await on.stores.jobs.stage_jobs(limit=10)
    assert [again.attempt for again in await on.claim(session)] == [2]


async def test_a_job_sent_back_without_delay_is_ready(on: Scenario) -> None:
    """Without a delay a job can be claimed again at once, whichever waiting state its ending named."""
    session = await on.worker()
    await on.enqueue(2)
    first, second = await on.claim(session)
    await on.end(session, first, state=JobState.READY)
    await on.end(session, second, state=JobState.SCHEDULED)

    assert await on.states([first.id, second.id]) == [JobState.READY] * 2
    assert [job.attempt for job in await on.claim(session)] == [2, 2]


async def test_a_waiting_job_belongs_to_no_session(on: Scenario) -> None:
    """A job that went back has no session and no start, so that nothing can be written for it."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.SCHEDULED, delay=MINUTE)

    view = await on.job(job.id)
    assert (view.session, view.started_at, view.finished_at) == (None, None, None)


async def test_a_job_sent_back_queues_up_again(on: Scenario) -> None:
    """A job that failed or waited goes behind what is ready already, also without a delay: it blocks no other."""
    session = await on.worker()
    await on.enqueue(2)
    charged, snoozed = await on.claim(session)
    on.clock.advance(SECOND)
    waiting = await on.enqueue(2)
    on.clock.advance(SECOND)
    await on.end(session, charged, state=JobState.READY, charged=True)
    await on.end(session, snoozed, state=JobState.SCHEDULED)

    assert [again.id for again in await on.claim(session)] == [*waiting, charged.id, snoozed.id]


async def test_a_released_job_keeps_its_place(on: Scenario) -> None:
    """Jobs that a stopping worker gives back run before those that became ready after them."""
    session = await on.worker()
    oldest = await on.enqueue(2)
    jobs = await on.claim(session)
    on.clock.advance(SECOND)
    waiting = await on.enqueue(2)
    on.clock.advance(SECOND)
    await on.end(session, *jobs, state=JobState.READY)

    assert [again.id for again in await on.claim(session)] == [*oldest, *waiting]


async def test_only_charged_endings_count_as_failures(on: Scenario) -> None:
    """Snoozes and releases raise neither failures nor crashes; a charged ending raises failures by one."""
    session, job = await on.start()
    counts = []
    for charged in (False, True, False, True):
        await on.end(session, job, state=JobState.READY, charged=charged)
        [job] = await on.claim(session)
        counts.append((job.failures, job.crashes))

    assert counts == [(0, 0), (1, 0), (1, 0), (2, 0)]


async def test_every_attempt_leaves_its_record(on: Scenario) -> None:
    """Each ended attempt is kept in order with its session, times and error; the final one ends the list."""
    session = await on.worker(lease=DAY)
    _, job = await on.start(session)
    started = on.clock.now()
    on.clock.advance(SECOND)
    await on.end(session, job, state=JobState.SCHEDULED, delay=SECOND, charged=True, error=ERROR)
    on.clock.advance(SECOND)
    await on.stores.jobs.stage_jobs(limit=10)
    [job] = await on.claim(session)
    await on.end(session, job, state=JobState.FAILED, charged=True, error=JobError("Last", "words"))

    first, last = await on.stores.inspect.get_attempts(job.id)
    assert (first.attempt, first.session, first.error) == (1, session, ERROR)
    assert (first.started_at, first.finished_at) == (started, started + SECOND)
    assert (last.attempt, last.outcome, last.error) == (2, "failed", JobError("Last", "words"))
    assert (last.session, last.finished_at) == (session, on.clock.now())


async def test_outcomes_of_attempts_say_what_happened(on: Scenario) -> None:
    """`failed` for a charged ending, `crashed` for a lone crash, the final state at the end; no record of the rest."""
    session, job = await on.start()
    for ending in ({"charged": True}, {}, {"lone_crash": True}, {}):
        await on.end(session, job, state=JobState.READY, **ending)
        [job] = await on.claim(session)
    await on.end(session, job)

    records = await on.stores.inspect.get_attempts(job.id)
    outcomes = [(record.attempt, record.outcome) for record in records]
    assert outcomes == [(1, "failed"), (3, "crashed"), (5, "succeeded")]


async def test_a_job_that_ran_no_attempt_has_no_record(on: Scenario) -> None:
    """A job cancelled before it started has no attempts to show."""
    [job_id] = await on.enqueue()
    await on.stores.control.cancel_job(job_id)

    assert await on.stores.inspect.get_attempts(job_id) == []


async def test_a_job_cancelled_between_attempts_keeps_its_records(on: Scenario) -> None:
    """A job cancelled while it waits for its retry shows the attempts it had, and no other."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.SCHEDULED, delay=MINUTE, charged=True, error=ERROR)
    await on.stores.control.cancel_job(job.id)

    [record] = await on.stores.inspect.get_attempts(job.id)
    assert (record.attempt, record.outcome, record.error) == (1, "failed", ERROR)


async def test_a_cancel_request_ends_a_job_that_would_go_back(on: Scenario) -> None:
    """A job whose cancel was requested is cancelled in place of running again."""
    session = await on.worker()
    await on.enqueue(2)
    jobs = await on.claim(session)
    for job in jobs:
        await on.stores.control.cancel_job(job.id)
    first, second = jobs

    assert await on.end(session, first, state=JobState.READY) == [first.id]
    assert await on.end(session, second, state=JobState.SCHEDULED, delay=MINUTE, charged=True) == [second.id]
    assert await on.states([first.id, second.id]) == [JobState.CANCELLED] * 2


async def test_a_cancel_request_does_not_undo_a_success(on: Scenario) -> None:
    """A job that succeeded before its worker heard of the cancel stays succeeded."""
    session, job = await on.start()
    await on.stores.control.cancel_job(job.id)
    await on.end(session, job, result="1")

    assert (await on.job(job.id)).state is JobState.SUCCEEDED


# Poison


async def crash_alone(on: Scenario, *progressed: bool) -> JobState:
    """Let a job crash alone in its own process again and again; return where that leaves it."""
    session, job = await on.start()
    for progress in progressed:
        await on.end(session, job, state=JobState.READY, error=ERROR, lone_crash=True, progressed=progress)
        claimed = await on.claim(session)
        if not claimed:
            break
        [job] = claimed
    return (await on.job(job.id)).state


async def test_a_lone_crash_counts_as_a_crash_not_as_a_failure(on: Scenario) -> None:
    """The death of a job's own process raises crashes by one and failures not at all."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.READY, error=ERROR, lone_crash=True)

    view = await on.job(job.id)
    assert (view.state, view.crashes, view.failures) == (JobState.READY, 1, 0)
    [record] = await on.stores.inspect.get_attempts(job.id)
    assert (record.outcome, record.error) == ("crashed", ERROR)


async def test_an_attempt_that_was_lost_elsewhere_costs_nothing_and_leaves_a_record(on: Scenario) -> None:
    """One that ends with an error and is not charged: it raises neither failures nor crashes, and is to be seen."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.SCHEDULED, error=ERROR, delay=timedelta(hours=1))

    view = await on.job(job.id)
    assert (view.state, view.crashes, view.failures) == (JobState.SCHEDULED, 0, 0)
    [record] = await on.stores.inspect.get_attempts(job.id)
    assert (record.outcome, record.error) == ("lost", ERROR)


async def test_the_third_crash_alone_is_poison(on: Scenario) -> None:
    """A job that crashed alone three times without progress fails with kind `poison` and runs no more."""
    session, job = await on.start()
    for _ in range(2):
        await on.end(session, job, state=JobState.READY, lone_crash=True)
        [job] = await on.claim(session)

    assert await on.end(session, job, state=JobState.READY, lone_crash=True) == [job.id]
    view = await on.job(job.id)
    assert view.error is not None
    assert (view.state, view.error.kind, view.crashes) == (JobState.FAILED, "poison", 3)
    assert await on.claim(session) == []


async def test_two_crashes_alone_are_forgiven(on: Scenario) -> None:
    """Two crashes alone leave the job running."""
    assert await crash_alone(on, False, False) is JobState.RUNNING


async def test_progress_clears_the_count_of_crashes_alone(on: Scenario) -> None:
    """A checkpoint or an answer stored before a crash starts the count anew, with that crash as the first."""
    assert await crash_alone(on, False, False, True, False) is JobState.RUNNING


async def test_a_crash_count_goes_on_after_progress(on: Scenario) -> None:
    """After progress three crashes in all, the one with progress included, are poison again."""
    assert await crash_alone(on, False, False, True, False, False) is JobState.FAILED


async def test_progress_without_a_crash_clears_the_count(on: Scenario) -> None:
    """An attempt that made progress and went back for another reason clears the count as well."""
    session, job = await on.start()
    for lone_crash, progressed in ((True, False), (True, False), (False, True), (True, False), (True, False)):
        await on.end(session, job, state=JobState.READY, lone_crash=lone_crash, progressed=progressed)
        [job] = await on.claim(session)

    assert job.crashes == 4


async def test_releases_at_once_are_applied_once(on: Scenario) -> None:
    """Of many equal releases at the same moment one is applied: one failure, one record."""
    session, job = await on.start()
    calls = (on.end(session, job, state=JobState.SCHEDULED, delay=MINUTE, charged=True) for _ in range(8))

    answers = await asyncio.gather(*calls)
    assert sorted(answers) == [[]] * 7 + [[job.id]]
    assert (await on.job(job.id)).failures == 1
    assert len(await on.stores.inspect.get_attempts(job.id)) == 1


async def test_a_cancel_comes_before_poison(on: Scenario) -> None:
    """A job that was to be cancelled is, also when its attempt was the last lone crash allowed."""
    session, job = await on.start()
    for _ in range(2):
        await on.end(session, job, state=JobState.READY, error=ERROR, lone_crash=True)
        [job] = await on.claim(session)
    await on.stores.control.cancel_job(job.id)
    await on.end(session, job, state=JobState.READY, error=ERROR, lone_crash=True)

    view = await on.job(job.id)
    assert (view.state, view.error, view.crashes) == (JobState.CANCELLED, ERROR, 3)


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.READY, JobState.SCHEDULED])
async def test_an_ending_named_twice_in_a_call_is_answered_once(on: Scenario, state: JobState) -> None:
    """A call that holds the same completion twice applies it once and says so once."""
    session, job = await on.start()
    done = Completion(job.id, job.attempt, state, delay=MINUTE, charged=state is JobState.SCHEDULED)

    assert await on.stores.jobs.complete_jobs(session, [done, done]) == [job.id]
    assert (await on.job(job.id)).failures == int(done.charged)
