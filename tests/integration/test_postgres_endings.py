"""Endings that meet a job which had ended before: the statement that assumes there is none is done again without it."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.model.job import Claim, ClaimedJob, Completion, JobState, JobView, NewJob
from headrace.ports.stores import Stores
from tests.integration.postgres_setup import ARGS, SPEC, claim, connection, done, enqueue, register, schema_stores

OTHERS = 50
WAITING = 5


async def run_again(stores: Stores, session: UUID) -> tuple[JobView, ClaimedJob]:
    """End a job, insert it again as a late duplicate of its insert does, and claim that; return both."""
    job = NewJob(SPEC, ARGS)
    await stores.jobs.insert_jobs([job])
    [first] = await claim(stores, session, 1)
    ending = Completion(first.id, first.attempt, JobState.SUCCEEDED, result='"first"')
    assert await stores.jobs.complete_jobs(session, [ending]) == [job.id]
    ended = await view(stores, job.id)
    await stores.jobs.insert_jobs([job])
    [again] = await claim(stores, session, 1)
    assert again.id == job.id
    return ended, again


async def view(stores: Stores, job_id: UUID) -> JobView:
    """Return a job that must exist."""
    found = await stores.inspect.get_job(job_id)
    assert found is not None
    return found


async def in_both_tables(schema: str) -> int:
    """Return how many jobs are live and final at once."""
    async with connection() as other:
        query = f'SELECT count(*) FROM "{schema}".jobs JOIN "{schema}".finished_jobs USING (id)'
        return int(await other.fetchval(query))


@pytest.mark.parametrize("returned", [0, 3], ids=["all final", "some go back"])
@pytest.mark.parametrize("pooled", [False, True], ids=["own transactions", "as behind a pooler"])
async def test_a_job_that_had_ended_leaves_the_others_and_the_claim_as_they_are(returned: int, pooled: bool) -> None:
    """One call ends 50 jobs and one that had ended, and claims: each ends once, the claim is answered, the first stays.

    Some that go back beside them go back once.
    """
    async with schema_stores(pooled=pooled) as (schema, stores):
        session = await register(stores)
        first, again = await run_again(stores, session)
        await enqueue(stores, OTHERS + returned)
        others = await claim(stores, session, OTHERS + returned)
        waiting = await enqueue(stores, WAITING)
        ending = [Completion(again.id, again.attempt, JobState.FAILED, result='"second"', charged=True)]
        ending += done(others[:OTHERS]) + done(others[OTHERS:], JobState.READY)

        ended, claimed = await stores.jobs.exchange_jobs(session, ending[::-1], Claim(session, "default", WAITING))

        assert sorted(ended) == sorted(completion.job_id for completion in ending)
        assert [(job.id, job.attempt) for job in claimed] == [(job_id, 1) for job_id in sorted(waiting)]
        assert sorted(await stores.jobs.claimed_jobs(session, queue="default"), key=lambda job: job.id) == claimed
        assert await view(stores, again.id) == first
        assert first.result == "first"
        assert await in_both_tables(schema) == 0
        states = [(await view(stores, job.id)).state for job in others]
        assert states == [JobState.SUCCEEDED] * OTHERS + [JobState.READY] * returned
        # Sent again after a lost answer, nothing of it has any effect.
        assert (await stores.jobs.exchange_jobs(session, ending, Claim(session, "nobody", 1))) == ([], [])


async def test_a_stale_ending_of_a_job_that_had_ended_is_refused() -> None:
    """Under another attempt or session neither the duplicate nor what ended first is touched."""
    async with schema_stores() as (_, stores):
        session, stranger = await register(stores), await register(stores)
        first, again = await run_again(stores, session)
        [fresh] = await claim_new(stores, session)
        stale = [
            Completion(again.id, again.attempt + 1, JobState.SUCCEEDED),
            Completion(fresh.id, fresh.attempt, JobState.SUCCEEDED),
        ]
        assert await stores.jobs.complete_jobs(stranger, stale) == []
        assert await stores.jobs.complete_jobs(session, stale) == [fresh.id]
        assert [job.id for job in await stores.jobs.claimed_jobs(session, queue="default")] == [again.id]
        assert await stores.jobs.complete_jobs(session, done([again])) == [again.id]
        assert await view(stores, again.id) == first


async def claim_new(stores: Stores, session: UUID) -> list[ClaimedJob]:
    """Enqueue a job and claim it."""
    await enqueue(stores, 1)
    return await claim(stores, session, 1)
