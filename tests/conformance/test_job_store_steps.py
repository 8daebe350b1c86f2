"""JobStore.save_step and load_steps: checkpoints, written once under the fence."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from headrace.model.errors import FenceLostError
from headrace.model.job import ClaimedJob, JobState
from tests.conformance.scenario import LEASE, Scenario


async def save(on: Scenario, session: UUID, job: ClaimedJob, name: str, value: str) -> str:
    """Store a step under the fence of a claimed job."""
    return await on.stores.jobs.save_step(job.id, attempt=job.attempt, session=session, name=name, value=value)


async def test_a_step_is_stored_and_read_back(on: Scenario) -> None:
    """A stored step is returned and loaded as the text it was given as."""
    session, job = await on.start()

    assert await save(on, session, job, "fetch", '{"a": [1, "é"]}') == '{"a": [1, "é"]}'
    assert await save(on, session, job, "parse", "2") == "2"
    assert await on.stores.jobs.load_steps(job.id) == {"fetch": '{"a": [1, "é"]}', "parse": "2"}


async def test_a_step_is_written_once(on: Scenario) -> None:
    """The first value of a step stands; writing it again returns that one."""
    session, job = await on.start()
    await save(on, session, job, "fetch", "1")

    assert await save(on, session, job, "fetch", "2") == "1"
    assert await on.stores.jobs.load_steps(job.id) == {"fetch": "1"}


async def test_what_an_executor_keeps_is_of_one_attempt(on: Scenario) -> None:
    """Within an attempt it is written once; the next attempt puts its own in that place, and no heap of it grows."""
    session, job = await on.start()
    name, first, second = "headrace:begun", '{"attempt": 1, "sign": "a"}', '{"attempt": 2, "sign": "b"}'
    assert await save(on, session, job, name, first) == first
    assert await save(on, session, job, name, '{"attempt": 1, "sign": "late"}') == first
    await save(on, session, job, "own", '{"attempt": 1}')
    await on.end(session, job, state=JobState.READY)
    [job] = await on.claim(session)
    assert await save(on, session, job, name, second) == second
    assert await save(on, session, job, name, '{"attempt": 2, "sign": "late"}') == second
    assert await save(on, session, job, "own", '{"attempt": 2}') == '{"attempt": 1}'
    assert await on.stores.jobs.load_steps(job.id) == {name: second, "own": '{"attempt": 1}'}


async def test_steps_belong_to_their_job(on: Scenario) -> None:
    """Two jobs may have steps of the same name; a job without steps has none."""
    session = await on.worker()
    await on.enqueue(3)
    first, second, third = await on.claim(session)
    await save(on, session, first, "fetch", "1")
    await save(on, session, second, "fetch", "2")

    assert await on.stores.jobs.load_steps(second.id) == {"fetch": "2"}
    assert await on.stores.jobs.load_steps(third.id) == {}
    assert await on.stores.jobs.load_steps(uuid4()) == {}


async def test_steps_outlive_their_attempt(on: Scenario) -> None:
    """The next attempt reads what the one before stored, whether that failed or its worker died."""
    session, job = await on.start()
    await save(on, session, job, "fetch", "1")
    await on.end(session, job, state=JobState.READY, charged=True)
    [job] = await on.claim(session)
    assert await save(on, session, job, "fetch", "9") == "1"
    await save(on, session, job, "parse", "2")
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    await on.claim(await on.worker())

    assert await on.stores.jobs.load_steps(job.id) == {"fetch": "1", "parse": "2"}


async def test_an_attempt_that_lost_its_job_stores_nothing(on: Scenario) -> None:
    """Another session, another attempt, and an attempt that was rescued or has ended are refused."""
    session, job = await on.start()
    fences = [(uuid4(), job), (session, replace(job, attempt=2)), (session, replace(job, id=uuid4()))]
    for other, stale in fences:
        with pytest.raises(FenceLostError):
            await save(on, other, stale, "fetch", "1")
    await on.end(session, job, state=JobState.READY)
    with pytest.raises(FenceLostError):
        await save(on, session, job, "fetch", "1")
    [again] = await on.claim(session)
    with pytest.raises(FenceLostError):
        await save(on, session, job, "fetch", "1")
    await on.end(session, again)
    with pytest.raises(FenceLostError):
        await save(on, session, again, "fetch", "1")

    assert await on.stores.jobs.load_steps(job.id) == {}


async def test_a_lost_attempt_is_told_so_even_for_a_step_that_is_stored(on: Scenario) -> None:
    """The fence comes first: a zombie does not go on with a step that the attempt before it stored."""
    session, job = await on.start()
    await save(on, session, job, "fetch", "1")
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)

    with pytest.raises(FenceLostError):
        await save(on, session, job, "fetch", "1")


async def test_concurrent_writers_of_a_step_agree(on: Scenario) -> None:
    """Whoever writes a step at the same moment gets the one value that is stored."""
    session, job = await on.start()

    answers = await asyncio.gather(*(save(on, session, job, "fetch", str(number)) for number in range(8)))
    assert len(set(answers)) == 1
    assert await on.stores.jobs.load_steps(job.id) == {"fetch": answers[0]}


async def test_steps_stay_with_a_finished_job(on: Scenario) -> None:
    """The steps of a finished job can be read until it is pruned."""
    session, job = await on.start()
    await save(on, session, job, "fetch", "1")
    await on.end(session, job)

    assert await on.stores.jobs.load_steps(job.id) == {"fetch": "1"}


async def test_steps_of_several_jobs_are_read_at_once(on: Scenario) -> None:
    """Steps are read by job and name; what is not stored is left out, also of jobs that are not there."""
    session = await on.worker()
    await on.enqueue(2)
    first, second = await on.claim(session)
    await save(on, session, first, "fetch", "1")
    await save(on, session, first, "parse", "2")
    await save(on, session, second, "fetch", "3")

    wanted = [(first.id, "fetch"), (first.id, "none"), (second.id, "fetch"), (second.id, "parse"), (uuid4(), "fetch")]
    assert await on.stores.jobs.read_steps(wanted) == {(first.id, "fetch"): "1", (second.id, "fetch"): "3"}
    assert await on.stores.jobs.read_steps([]) == {}


async def test_the_job_of_a_fence_is_read_as_it_was_claimed(on: Scenario) -> None:
    """Whoever knows the fence of a running attempt gets its job; under another fence, or after its end, nobody does."""
    session, job = await on.start()
    read = on.stores.jobs.running_job

    assert await read(job.id, attempt=job.attempt, session=session) == job
    assert await read(job.id, attempt=job.attempt + 1, session=session) is None
    assert await read(job.id, attempt=job.attempt, session=uuid4()) is None
    assert await read(uuid4(), attempt=1, session=session) is None
    await on.end(session, job, state=JobState.SCHEDULED, delay=LEASE)
    assert await read(job.id, attempt=job.attempt, session=session) is None
