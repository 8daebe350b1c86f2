"""JobStore.exchange_jobs: completions that take a claim along."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.model.batch import NewBatch
from headrace.model.job import Claim, ClaimedJob, Completion, JobError, JobState
from tests.conformance.scenario import LEASE, SECOND, SPEC, Scenario, items

Answer = tuple[list[UUID], list[ClaimedJob]]


async def exchange(on: Scenario, session: UUID, *jobs: ClaimedJob, limit: int = 10, queue: str = "default") -> Answer:
    """End jobs well and claim others with it."""
    done = [Completion(job.id, job.attempt, JobState.SUCCEEDED, result="1") for job in jobs]
    return await on.stores.jobs.exchange_jobs(session, done, Claim(session, queue, limit))


async def test_jobs_end_and_others_begin_in_one_call(on: Scenario) -> None:
    """The answer holds what was ended and, in claim order, what was claimed; both are stored."""
    session = await on.worker()
    first, second = await on.enqueue(2)
    later = await on.enqueue(priority=9)
    [job] = await on.claim(session, 1)

    accepted, claimed = await exchange(on, session, job)
    assert accepted == [first]
    assert [(found.id, found.attempt) for found in claimed] == [(second, 1), (later[0], 1)]
    assert await on.states([first, second, *later]) == [JobState.SUCCEEDED, JobState.RUNNING, JobState.RUNNING]
    assert (await on.job(first)).result == 1
    assert (await on.job(second)).session == session


async def test_a_claim_that_goes_along_keeps_its_limit(on: Scenario) -> None:
    """No more is claimed than asked for, and nothing of another queue."""
    session = await on.worker()
    await on.enqueue(4)
    await on.enqueue(queue="other")
    [job] = await on.claim(session, 1)

    assert len((await exchange(on, session, job, limit=2))[1]) == 2
    assert (await exchange(on, session, limit=0))[1] == []
    assert (await exchange(on, session, job, queue="nothing here")) == ([], [])


async def test_refused_endings_do_not_hold_up_the_claim(on: Scenario) -> None:
    """A late ending changes nothing, also where others in the call are accepted and jobs are claimed with it."""
    session = await on.worker()
    await on.enqueue(3)
    kept, lost = await on.claim(session, 2)
    await on.end(session, lost, result='"first"')

    accepted, claimed = await exchange(on, session, kept, lost)
    assert accepted == [kept.id]
    assert len(claimed) == 1
    assert (await on.job(lost.id)).result == "first"


async def test_a_session_that_ended_is_given_nothing(on: Scenario) -> None:
    """Endings of a session whose jobs nobody took yet are accepted after its lease, claims are not."""
    session = await on.worker()
    await on.enqueue(2)
    [job] = await on.claim(session, 1)
    on.clock.advance(LEASE + SECOND)

    accepted, claimed = await exchange(on, session, job)
    assert (accepted, claimed) == ([job.id], [])


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
async def test_every_final_ending_goes_with_a_claim(on: Scenario, state: JobState) -> None:
    """An ending that is no plain success keeps its error, its usage and its counts."""
    session = await on.worker()
    await on.enqueue(2)
    [job] = await on.claim(session, 1)
    error = JobError("ValueError", "no “such” thing\n")
    done = Completion(job.id, job.attempt, state, error=error, usage='{"calls":2}', charged=True)

    accepted, claimed = await on.stores.jobs.exchange_jobs(session, [done], Claim(session, "default", 1))
    view = await on.job(job.id)
    assert (accepted, len(claimed)) == ([job.id], 1)
    assert (view.state, view.error, view.usage, view.failures) == (state, error, {"calls": 2}, 1)


async def test_what_goes_back_is_completed_whatever_is_claimed(on: Scenario) -> None:
    """Endings that are not final are applied; whether such a call claims is the store's choice."""
    session = await on.worker()
    await on.enqueue(3)
    good, bad = await on.claim(session, 2)
    done = [
        Completion(good.id, good.attempt, JobState.SUCCEEDED, result="1"),
        Completion(bad.id, bad.attempt, JobState.SCHEDULED, delay=SECOND, charged=True),
    ]
    accepted, claimed = await on.stores.jobs.exchange_jobs(session, done, Claim(session, "default", 1))
    assert set(accepted) == {good.id, bad.id}
    assert await on.states([good.id, bad.id]) == [JobState.SUCCEEDED, JobState.SCHEDULED]
    assert set(await on.states([job.id for job in claimed])) <= {JobState.RUNNING}


async def test_caps_hold_for_claims_that_go_along(on: Scenario) -> None:
    """A claim with limit keys that goes along takes at most what the caps leave."""
    session = await on.worker()
    await on.stores.control.set_caps({"key": 1})
    await on.enqueue(3, limit_key="key")
    [plain] = await on.enqueue()
    [job] = await on.claim(session)
    assert job.id == plain

    done = [Completion(job.id, job.attempt, JobState.SUCCEEDED)]
    _, claimed = await on.stores.jobs.exchange_jobs(session, done, Claim(session, "default", 5, ("key",)))
    rest = await on.claim(session, 5, limit_keys=["key"])
    assert len(claimed) + len(rest) == 1


async def test_nothing_of_a_paused_queue_or_cancelled_batch_goes_along(on: Scenario) -> None:
    """Claims that go along heed pauses and cancels as others do."""
    session = await on.worker()
    batch_id = await on.stores.batches.create_batch(NewBatch(SPEC), items(3))
    [first, second] = await on.claim(session, 2)
    await on.stores.batches.cancel_batch(batch_id)
    assert (await exchange(on, session, first))[1] == []

    await on.enqueue()
    await on.stores.control.set_queue_paused("default", paused=True, reason="a test")
    assert (await exchange(on, session, second))[1] == []
