"""JobStore.complete_jobs: final endings, and the fence."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from headrace.model.job import CancelAnswer, Completion, JobError, JobState, NewJob
from tests.conformance.scenario import ARGS, LEASE, MINUTE, SECOND, SPEC, Scenario

ERROR = JobError("ValueError", "no such thing", "Traceback …")


async def test_a_success_is_final_with_its_result(on: Scenario) -> None:
    """A succeeded job keeps its result, its usage, who ran it and when it ended."""
    session, job = await on.start()
    on.clock.advance(SECOND)
    accepted = await on.end(session, job, result='{"value":[1,null,"é"]}', usage='{"calls":2}')

    view = await on.job(job.id)
    assert accepted == [job.id]
    assert (view.state, view.result, view.usage, view.error) == (
        JobState.SUCCEEDED,
        {"value": [1, None, "é"]},
        {"calls": 2},
        None,
    )
    assert (view.session, view.attempt, view.finished_at) == (session, 1, on.clock.now())
    assert view.started_at == on.clock.now() - SECOND


async def test_a_failure_is_final_with_its_error(on: Scenario) -> None:
    """A failed job keeps the error that ended it and counts the failure."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.FAILED, error=ERROR, charged=True)

    view = await on.job(job.id)
    assert (view.state, view.error, view.failures, view.result) == (JobState.FAILED, ERROR, 1, None)


async def test_a_job_cancelled_by_its_handler_is_final(on: Scenario) -> None:
    """An attempt may end its job as cancelled, with the reason."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.CANCELLED, error=JobError("cancelled", "not needed"))

    view = await on.job(job.id)
    assert (view.state, view.error) == (JobState.CANCELLED, JobError("cancelled", "not needed"))


async def test_many_endings_go_in_together(on: Scenario) -> None:
    """One call ends jobs in different ways, and answers with all it applied."""
    session = await on.worker()
    await on.enqueue(4)
    jobs = await on.claim(session)
    outcomes = [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.READY]
    done = [Completion(job.id, job.attempt, state) for job, state in zip(jobs, outcomes, strict=True)]

    accepted = await on.stores.jobs.complete_jobs(session, done)
    assert sorted(accepted) == [job.id for job in jobs]
    assert await on.states([job.id for job in jobs]) == outcomes


async def test_no_completion_is_a_call_too(on: Scenario) -> None:
    """Completing nothing answers with nothing."""
    assert await on.stores.jobs.complete_jobs(await on.worker(), []) == []


# The fence


async def test_a_wrong_attempt_changes_nothing(on: Scenario) -> None:
    """A completion of an attempt that is not the running one is refused."""
    session, job = await on.start()
    before = await on.job(job.id)

    for attempt in (0, 2):
        assert await on.end(session, replace(job, attempt=attempt), result="1") == []
    assert await on.job(job.id) == before


async def test_another_session_changes_nothing(on: Scenario) -> None:
    """A completion under another session is refused, alive or unknown."""
    _, job = await on.start()
    before = await on.job(job.id)

    assert await on.end(await on.worker(), job, result="1") == []
    assert await on.end(uuid4(), job, state=JobState.READY) == []
    assert await on.job(job.id) == before


async def test_an_unknown_job_is_refused(on: Scenario) -> None:
    """A completion of a job that does not exist is refused, and its neighbours are applied."""
    session, job = await on.start()

    assert await on.end(session, replace(job, id=uuid4()), job) == [job.id]


async def test_a_job_that_does_not_run_is_refused(on: Scenario) -> None:
    """A job that went back takes no second ending from the same attempt."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.READY)
    before = await on.job(job.id)

    for state in JobState.SUCCEEDED, JobState.FAILED, JobState.SCHEDULED:
        assert await on.end(session, job, state=state, charged=True, delay=MINUTE) == []
    assert await on.job(job.id) == before


async def test_one_stale_completion_does_not_spoil_its_call(on: Scenario) -> None:
    """Of a call with good and stale completions exactly the good ones are applied."""
    session = await on.worker()
    await on.enqueue(3)
    first, second, third = await on.claim(session)
    await on.end(session, second, result="2")

    accepted = await on.end(session, first, second, third, result="9")
    assert sorted(accepted) == sorted([first.id, third.id])
    assert (await on.job(second.id)).result == 2


async def test_an_unrescued_job_may_end_after_the_lease(on: Scenario) -> None:
    """The fence is on the row: a session whose lease has ended still ends what nobody took from it."""
    session, job = await on.start()
    on.clock.advance(LEASE + SECOND)

    assert await on.end(session, job, result="1") == [job.id]
    assert (await on.stores.jobs.rescue_jobs(limit=10)).released == ()
    assert (await on.job(job.id)).state is JobState.SUCCEEDED


async def test_a_late_ack_after_rescue_changes_nothing(on: Scenario) -> None:
    """A frozen worker that wakes up after its job was taken back cannot write to it."""
    session, job = await on.start()
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    rescued = await on.job(job.id)

    for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.READY, JobState.SCHEDULED):
        assert await on.end(session, job, state=state, result="1", charged=True) == []
    assert await on.job(job.id) == rescued


async def test_a_late_ack_after_another_claim_changes_nothing(on: Scenario) -> None:
    """The attempt that runs now is the only one that can end the job."""
    session, job = await on.start()
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    other = await on.worker()
    [again] = await on.claim(other)

    assert await on.end(session, job, result='"late"') == []
    assert await on.end(other, again, result='"now"') == [job.id]
    assert (await on.job(job.id)).result == "now"


@pytest.mark.parametrize("final", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])
async def test_a_final_row_never_changes(on: Scenario, final: JobState) -> None:
    """Whoever redelivers a final job (acks, inserts, sweeps, cancels, keys) finds it as it is and runs nothing."""
    session = await on.worker()
    new = NewJob(SPEC, ARGS, key="k", body_hash="b")
    await on.stores.jobs.insert_jobs([new])
    [job] = await on.claim(session)
    await on.end(session, job, state=final, result="1", error=ERROR)
    before = await on.job(job.id)
    attempts = await on.stores.inspect.get_attempts(job.id)

    for state in JobState:
        await on.end(session, job, state=state, result="2", charged=True)
    await on.stores.jobs.insert_jobs([new], retrying=True)
    await on.stores.jobs.insert_jobs([replace(new, key=None)], retrying=True)
    assert await on.stores.control.cancel_job(job.id) is CancelAnswer.ALREADY_FINAL
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=10, term=await on.term())
    await on.stores.jobs.stage_jobs(limit=10)

    assert await on.claim(await on.worker()) == []
    assert await on.job(job.id) == before
    assert await on.stores.inspect.get_attempts(job.id) == attempts


async def test_equal_acks_at_once_are_applied_once(on: Scenario) -> None:
    """Of many equal completions sent at the same moment one is applied."""
    session, job = await on.start()

    answers = await asyncio.gather(*(on.end(session, job, result=str(number)) for number in range(8)))
    assert sorted(answers) == [[]] * 7 + [[job.id]]
    assert (await on.job(job.id)).result == answers.index([job.id])


async def test_an_ack_and_a_rescue_at_once_have_one_winner(on: Scenario) -> None:
    """A job whose lease ends while its ack is under way ends once: by the ack, or by the rescue."""
    session = await on.worker()
    await on.enqueue(30)
    jobs = await on.claim(session)
    on.clock.advance(LEASE)
    calls = [call for job in jobs for call in (on.end(session, job), on.stores.jobs.rescue_jobs(limit=1))]
    await asyncio.gather(*calls)

    for job in jobs:
        view = await on.job(job.id)
        assert (view.state, view.crashes) in {(JobState.SUCCEEDED, 0), (JobState.READY, 1)}
        assert len(await on.stores.inspect.get_attempts(job.id)) == 1


async def test_acks_in_opposite_order_do_not_block_each_other(on: Scenario) -> None:
    """Calls that end the same jobs in opposite order all return, and each job ends once."""
    session = await on.worker()
    await on.enqueue(50)
    jobs = await on.claim(session)

    answers = await asyncio.gather(*(on.end(session, *order) for order in [jobs, jobs[::-1]] * 4))
    assert sorted(job_id for answer in answers for job_id in answer) == sorted(job.id for job in jobs)


@pytest.mark.parametrize("state", [JobState.READY, JobState.SCHEDULED, JobState.SUCCEEDED])
async def test_each_part_of_the_fence_holds_alone(on: Scenario, state: JobState) -> None:
    """An ending is refused when only the attempt is wrong, or only the session, or only nothing runs any more."""
    session, job = await on.start()
    before = await on.job(job.id)

    for attempt in (job.attempt - 1, job.attempt + 1):
        assert await on.end(session, replace(job, attempt=attempt), state=state, charged=True) == []
    for other in (uuid4(), await on.worker()):
        assert await on.end(other, job, state=state, charged=True) == []
    assert await on.job(job.id) == before
