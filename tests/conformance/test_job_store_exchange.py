"""JobStore.exchange_jobs: what ends and what begins in one round trip obeys the rules of both."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from headrace.model.job import Claim, ClaimedJob, Completion, JobError, JobState
from headrace.model.limits import Gate
from tests.conformance.scenario import LEASE, SECOND, Scenario


async def exchange(
    on: Scenario, session: UUID, jobs: list[ClaimedJob], *, limit: int = 10
) -> tuple[list[UUID], list[ClaimedJob]]:
    """End jobs well and claim."""
    done = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
    return await on.stores.jobs.exchange_jobs(session, done, Claim(session, "default", limit))


async def test_jobs_end_and_others_begin_in_claim_order(on: Scenario) -> None:
    """The endings are applied, and as many jobs as asked for begin as the next attempts, in the order of a claim."""
    session = await on.worker()
    await on.enqueue(2)
    jobs = await on.claim(session)
    waiting = await on.enqueue(5)

    ended, claimed = await exchange(on, session, jobs, limit=3)
    assert sorted(ended) == sorted(job.id for job in jobs)
    assert [(job.id, job.attempt) for job in claimed] == [(job_id, 1) for job_id in waiting[:3]]
    assert await on.stores.jobs.claimed_jobs(session, queue="default") == claimed
    assert await on.states(ended) == [JobState.SUCCEEDED] * 2


async def test_a_stale_ending_is_refused_and_the_claim_goes_on(on: Scenario) -> None:
    """Endings of another attempt or session change nothing; the claim beside them is answered."""
    session, job = await on.start()
    before = await on.job(job.id)
    [waiting] = await on.enqueue()

    ended, claimed = await exchange(on, session, [replace(job, attempt=2), replace(job, id=uuid4())])
    assert (ended, [job.id for job in claimed]) == ([], [waiting])
    assert (await exchange(on, await on.worker(), [job])) == ([], [])
    assert await on.job(job.id) == before


async def test_a_dead_session_ends_its_jobs_and_gets_no_others(on: Scenario) -> None:
    """After its lease a session may still end what nobody took from it, and claims nothing."""
    session, job = await on.start()
    await on.enqueue()
    on.clock.advance(LEASE)

    assert await exchange(on, session, [job]) == ([job.id], [])


async def test_a_paused_queue_gives_nothing_in_exchange(on: Scenario) -> None:
    """While its queue is paused a session only ends jobs."""
    session, job = await on.start()
    await on.enqueue()
    await on.stores.control.set_queue_paused("default", paused=True)

    assert await exchange(on, session, [job]) == ([job.id], [])


async def test_nothing_is_exchanged_past_a_gate(on: Scenario) -> None:
    """A session that ends a job of a gated queue gets none of that queue in exchange, whatever room there is."""
    session = await on.worker()
    await on.enqueue(3, gate=Gate(caps=("task:llm",)))
    [job] = await on.admit(session, 1)

    assert await exchange(on, session, [job]) == ([job.id], [])


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
