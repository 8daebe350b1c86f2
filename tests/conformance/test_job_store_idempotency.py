"""JobStore.insert_jobs: idempotency keys."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from headrace.model.batch import NewBatch
from headrace.model.errors import ConflictError
from headrace.model.job import JobSpec, JobState, NewJob
from headrace.model.stats import Retention
from tests.conformance.scenario import ARGS, DAY, SECOND, SPEC, Scenario, items


def keyed(key: str = "k", body: str = "body", task: str = "work") -> NewJob:
    """Return a new job under a key."""
    return NewJob(JobSpec(task), ARGS, key=key, body_hash=body)


async def insert(on: Scenario, *jobs: NewJob) -> list[UUID]:
    """Insert jobs in one call."""
    return await on.stores.jobs.insert_jobs(jobs)


async def test_the_same_key_and_body_give_the_same_id(on: Scenario) -> None:
    """A second submit under a key inserts nothing and returns the id of the first."""
    [first] = await insert(on, keyed())

    assert await insert(on, keyed()) == [first]
    assert [job.id for job in await on.stores.inspect.list_jobs()] == [first]


async def test_the_same_key_with_another_body_is_a_conflict(on: Scenario) -> None:
    """A known key with another body raises ConflictError and changes nothing."""
    [first] = await insert(on, keyed())

    with pytest.raises(ConflictError):
        await insert(on, keyed(body="other"))
    assert [job.id for job in await on.stores.inspect.list_jobs()] == [first]


async def test_a_key_of_the_release_before_stands_for_the_same_body(on: Scenario) -> None:
    """What was stored under the hash that a body had then is known; it is not stored under it again."""
    job = replace(keyed(body="new"), former_hash="old")
    [first] = await insert(on, keyed(body="old"))
    [fresh] = await insert(on, replace(job, key="other"))

    assert await insert(on, job) == [first]
    assert await insert(on, keyed("other", body="new")) == [fresh]
    for conflicting in (keyed("other", body="old"), replace(keyed(body="neither"), former_hash="nor")):
        with pytest.raises(ConflictError):
            await insert(on, conflicting)


async def test_a_conflict_inserts_none_of_its_call(on: Scenario) -> None:
    """One conflicting job keeps every other job of the call out, and their keys free."""
    await insert(on, keyed("taken"))

    with pytest.raises(ConflictError):
        await insert(on, NewJob(SPEC, ARGS), keyed("free"), keyed("taken", body="other"))
    assert len(await on.stores.inspect.list_jobs()) == 1
    fresh = keyed("free", body="another")
    assert await insert(on, fresh) == [fresh.id]


async def test_known_and_new_jobs_mix_in_one_call(on: Scenario) -> None:
    """Each job of a call gets its own answer, in order: known keys their stored ids, new jobs their own."""
    [known] = await insert(on, keyed("known"))
    plain, fresh = NewJob(SPEC, ARGS), keyed("fresh")

    assert await insert(on, plain, keyed("known"), fresh) == [plain.id, known, fresh.id]
    assert len(await on.stores.inspect.list_jobs()) == 3


async def test_keys_belong_to_their_task(on: Scenario) -> None:
    """Two tasks may use the same key for different jobs."""
    first, second = keyed(task="left"), keyed(task="right", body="other")

    assert await insert(on, first, second) == [first.id, second.id]


async def test_a_key_outlives_its_job(on: Scenario) -> None:
    """A key of a finished job still returns that job's id, and runs nothing."""
    session = await on.worker()
    [first] = await insert(on, keyed())
    await on.end(session, *await on.claim(session))

    assert await insert(on, keyed()) == [first]
    assert await on.claim(session) == []
    assert (await on.job(first)).state is JobState.SUCCEEDED


async def test_equal_keys_in_one_call_make_one_job(on: Scenario) -> None:
    """The same key twice in one call stands for one job."""
    first = keyed()

    assert await insert(on, first, keyed()) == [first.id, first.id]
    assert len(await on.stores.inspect.list_jobs()) == 1


async def test_unequal_bodies_under_one_key_in_one_call_conflict(on: Scenario) -> None:
    """The same key with two bodies in one call raises ConflictError and inserts neither."""
    with pytest.raises(ConflictError):
        await insert(on, keyed(), keyed(body="other"))
    assert await on.stores.inspect.list_jobs() == []


async def test_a_key_is_kept_for_seven_days(on: Scenario) -> None:
    """A key answers for seven days, pruned or not."""
    [first] = await insert(on, keyed())
    on.clock.advance(7 * DAY - SECOND)
    await on.stores.jobs.prune_jobs(Retention(), limit=10)

    assert await insert(on, keyed()) == [first]


async def test_a_key_is_free_after_seven_days(on: Scenario) -> None:
    """After seven days a key may stand for something else, whether the pruner has come by or not."""
    await insert(on, keyed("a"), keyed("b"))
    on.clock.advance(7 * DAY)
    one, other = keyed("a", body="other"), keyed("b", body="other")

    assert await insert(on, one) == [one.id]
    await on.stores.jobs.prune_jobs(Retention(), limit=10)
    assert await insert(on, other) == [other.id]
    assert await insert(on, keyed("a", body="other")) == [one.id]


async def test_a_retried_insert_keeps_its_key(on: Scenario) -> None:
    """A keyed insert sent again after its answer was lost returns its own id, also when the job has finished."""
    session = await on.worker()
    job = keyed()
    await insert(on, job)
    await on.end(session, *await on.claim(session))

    assert await on.stores.jobs.insert_jobs([job], retrying=True) == [job.id]
    assert await on.claim(session) == []


async def test_keys_of_jobs_and_of_batches_are_apart(on: Scenario) -> None:
    """A batch may use a key that a job of the same task uses."""
    [job_id] = await insert(on, keyed())
    new = NewBatch(SPEC, key="k", body_hash="other")

    assert await on.stores.batches.create_batch(new, items(1)) == new.id
    assert await insert(on, keyed()) == [job_id]


async def test_concurrent_equal_submits_make_one_job(on: Scenario) -> None:
    """Twenty submits of one key at the same moment all return the id of one job."""
    answers = await asyncio.gather(*(insert(on, keyed()) for _ in range(20)))

    [job] = await on.stores.inspect.list_jobs()
    assert answers == [[job.id]] * 20


async def test_concurrent_unequal_submits_have_one_winner(on: Scenario) -> None:
    """Of ten submits of one key with different bodies exactly one is stored; the others conflict."""
    submits = (insert(on, keyed(body=str(number))) for number in range(10))
    answers = await asyncio.gather(*submits, return_exceptions=True)

    [job] = await on.stores.inspect.list_jobs()
    won = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert won == [[job.id]]
    assert sum(isinstance(answer, ConflictError) for answer in answers) == 9


async def test_concurrent_submits_of_crossing_keys_do_not_block_each_other(on: Scenario) -> None:
    """Calls that name the same keys in opposite order all end, with one job per key."""
    names = [f"key-{number}" for number in range(10)]
    calls = [insert(on, *(keyed(name) for name in order)) for order in [names, names[::-1]] * 4]
    answers = await asyncio.gather(*calls)

    assert {frozenset(answer) for answer in answers} == {frozenset(answers[0])}
    assert len(await on.stores.inspect.list_jobs()) == 10
