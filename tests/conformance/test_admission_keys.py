"""Admission.admit_jobs under concurrency keys: so many of a key at once, and with one at a time in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.admission import LimitKind, WaitReason
from headrace.model.job import ClaimedJob, JobState, NewJob
from headrace.model.limits import Declared, Gate, key_cap
from tests.conformance.scenario import ARGS, LEASE, SECOND, SPEC, Scenario

USER = Gate(key="user-1", key_limit=1)


def ids(jobs: list[ClaimedJob]) -> list[UUID]:
    """Return the ids of jobs."""
    return [job.id for job in jobs]


async def drain(on: Scenario, queue: str = "default") -> list[UUID]:
    """Work off a queue job by job and return the ids in the order in which they started."""
    session, order = await on.worker(), list[UUID]()
    while jobs := await on.admit(session, queue=queue):
        order += ids(jobs)
        await on.end(session, *jobs)
    return order


async def test_one_of_a_key_runs_at_a_time_in_order(on: Scenario) -> None:
    """With a limit of one, jobs of a key start one after the other in the order in which they came."""
    session = await on.worker()
    jobs = await on.enqueue(5, gate=USER)

    started = []
    for _ in jobs:
        [job] = await on.admit(session)
        assert await on.admit(session) == []
        await on.end(session, job)
        started.append(job.id)
    assert started == jobs


async def test_a_key_may_have_more_at_once(on: Scenario) -> None:
    """A limit of three lets three of a key run."""
    session = await on.worker()
    await on.enqueue(10, gate=Gate(key="user-1", key_limit=3))

    assert [len(await on.admit(session)) for _ in range(2)] == [3, 0]


async def test_keys_do_not_wait_for_each_other(on: Scenario) -> None:
    """Hundreds of jobs behind one key hold up none of another key, of none, nor of the same key in another queue."""
    session = await on.worker()
    first, *_ = await on.enqueue(300, gate=USER)
    on.clock.advance(SECOND)
    [other] = await on.enqueue(gate=Gate(key="user-2", key_limit=1))
    [plain] = await on.enqueue()
    [elsewhere] = await on.enqueue(gate=USER, queue="other")

    assert sorted(ids(await on.admit(session))) == sorted([first, other, plain])
    assert ids(await on.admit(session, queue="other")) == [elsewhere]


@pytest.mark.parametrize("facts", [{"delay": SECOND, "charged": True}, {"delay": SECOND}], ids=["retry", "snooze"])
async def test_a_job_that_waits_for_its_next_run_keeps_the_key(on: Scenario, facts: dict[str, object]) -> None:
    """The rest of the key waits while the first waits for its time, and it comes first when it is due."""
    session = await on.worker()
    first, *rest = await on.enqueue(3, gate=USER)
    await on.end(session, *await on.admit(session), state=JobState.SCHEDULED, **facts)

    assert await on.admit(session) == []
    on.clock.advance(timedelta(seconds=2))
    assert await on.admit(session) == []
    await on.stores.jobs.stage_jobs(limit=10)
    assert await drain(on) == [first, *rest]


@pytest.mark.parametrize("facts", [{"charged": True}, {}], ids=["retried at once", "released"])
async def test_a_job_that_goes_back_comes_first_again(on: Scenario, facts: dict[str, object]) -> None:
    """A job that is ready again at once starts before those of its key that came after it."""
    session = await on.worker()
    jobs = await on.enqueue(3, gate=USER)
    on.clock.advance(SECOND)
    await on.end(session, *await on.admit(session), state=JobState.READY, **facts)

    assert await drain(on) == jobs


async def test_a_rescued_job_comes_first_again(on: Scenario) -> None:
    """The order of a key outlives the worker that ran its first job."""
    jobs = await on.enqueue(3, gate=USER)
    assert ids(await on.admit(await on.worker())) == jobs[:1]
    on.clock.advance(LEASE)
    assert await on.admit(await on.worker()) == []
    await on.stores.jobs.rescue_jobs(limit=10)

    assert await drain(on) == jobs


async def test_the_place_is_kept_through_many_runs(on: Scenario) -> None:
    """However often the first is retried, in whatever way, none of its key passes it."""
    session = await on.worker()
    jobs = await on.enqueue(2, gate=USER)
    for delay in (SECOND, timedelta(), SECOND):
        state = JobState.SCHEDULED if delay else JobState.READY
        [job] = await on.admit(session)
        assert job.id == jobs[0]
        await on.end(session, job, state=state, delay=delay, charged=True)
        on.clock.advance(delay)
        await on.stores.jobs.stage_jobs(limit=10)

    assert await drain(on) == jobs


async def test_a_key_is_kept_against_other_gates(on: Scenario) -> None:
    """Jobs of the same key behind other caps, as of another task, wait for the one that keeps it."""
    session = await on.worker()
    await on.enqueue(gate=USER)
    await on.end(session, *await on.admit(session), state=JobState.SCHEDULED, delay=SECOND)
    await on.enqueue(gate=Gate(key="user-1", key_limit=1, caps=("task:other",)))

    assert await on.admit(session) == []


async def test_a_cancelled_holder_gives_the_key_back(on: Scenario) -> None:
    """A job that is cancelled while it waits for its next run lets the next of its key start."""
    session = await on.worker()
    first, second = await on.enqueue(2, gate=USER)
    await on.end(session, *await on.admit(session), state=JobState.SCHEDULED, delay=SECOND)
    await on.stores.control.cancel_job(first)

    assert ids(await on.admit(session)) == [second]


async def test_a_key_of_two_keeps_no_place(on: Scenario) -> None:
    """With a higher limit a job that waits for its retry leaves its room to others, and queues up again."""
    session, gate = await on.worker(), Gate(key="user-1", key_limit=2)
    first, second, third = await on.enqueue(3, gate=gate)
    jobs = await on.admit(session)
    assert ids(jobs) == [first, second]
    await on.end(session, jobs[0], state=JobState.SCHEDULED, delay=SECOND)
    assert ids(await on.admit(session)) == [third]
    on.clock.advance(SECOND / 2)
    [fourth] = await on.enqueue(gate=gate)
    on.clock.advance(SECOND)
    await on.stores.jobs.stage_jobs(limit=10)

    assert await on.end(session, jobs[1])
    assert ids(await on.admit(session)) == [fourth]


async def test_a_job_that_never_ran_keeps_no_key(on: Scenario) -> None:
    """A job that is scheduled for later does not hold up those that are ready."""
    later = NewJob(replace(SPEC, gate=USER), ARGS, run_at=on.clock.now() + SECOND)
    await on.stores.jobs.insert_jobs([later])
    [ready] = await on.enqueue(gate=USER)

    assert ids(await on.admit(await on.worker())) == [ready]


async def test_a_redriven_job_comes_after_those_that_waited(on: Scenario) -> None:
    """A failed job gives its key back; its redrive is a new job at the end of the line."""
    session = await on.worker()
    [failed] = await on.enqueue(gate=USER)
    await on.end(session, *await on.admit(session), state=JobState.FAILED)
    [waiting] = await on.enqueue(gate=USER)
    on.clock.advance(SECOND)
    again = await on.stores.control.retry_job(failed)

    assert await drain(on) == [waiting, again]


async def test_a_key_and_a_cap_hold_together(on: Scenario) -> None:
    """A cap over many keys is kept, and each key still has one at a time."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"task:render": 3}))
    for number in range(5):
        await on.enqueue(2, gate=Gate(key=f"user-{number}", key_limit=1, caps=("task:render",)))

    jobs = await on.admit(session)
    assert len(jobs) == 3
    await on.end(session, *jobs)
    assert len(await on.admit(session)) == 3


async def test_racing_workers_keep_the_order_of_a_key(on: Scenario) -> None:
    """Six that admit and finish at the same time run one job of a key at a time, in order."""
    jobs = await on.enqueue(25, gate=USER)
    started: list[UUID] = []

    async def work() -> None:
        session = await on.worker()
        while len(started) < len(jobs):
            for job in await on.admit(session, 5):
                started.append(job.id)
                assert await on.running() == [job.id]
                await on.end(session, job)

    await asyncio.gather(*(work() for _ in range(6)))
    assert started == jobs


@pytest.mark.parametrize("key", ["user-1", "a:b c"])
async def test_an_operator_changes_the_cap_of_a_key_while_jobs_wait(on: Scenario, key: str) -> None:
    """Raised, lowered, to nothing and back to what the jobs say; other keys and queues keep theirs."""
    session, name = await on.worker(queues={"default": 10, "other": 10}), key_cap("default", key)
    keyed = await on.enqueue(7, gate=Gate(key=key, key_limit=2))
    await on.enqueue(3, gate=Gate(key="user-2", key_limit=1))
    await on.enqueue(3, gate=Gate(key=key, key_limit=1), queue="other")
    first = await on.admit(session)
    assert (len(first), len(await on.admit(session, queue="other"))) == (3, 1)

    await on.gate.set_cap(name, 4)
    raised = await on.admit(session)
    assert len(raised) == 2
    [cap] = (await on.gate.list_limits()).caps
    assert (cap.key, cap.declared, cap.cap, cap.running) == (name, None, 4, 4)
    assert await on.admit(session, queue="other") == []

    await on.gate.set_cap(name, 0)
    await on.end(session, *raised)
    assert await on.admit(session) == []
    await on.gate.set_cap(name, None)
    assert await on.admit(session) == []
    await on.end(session, next(job for job in first if job.id in keyed))
    assert len(await on.admit(session)) == 1
    assert (await on.gate.list_limits()).caps == ()


async def test_a_job_behind_the_cap_that_an_operator_gave_its_key_says_so(on: Scenario) -> None:
    """The number is the one in force, also where it is zero and nobody runs."""
    await on.worker()
    [waiting] = await on.enqueue(gate=Gate(key="user-1", key_limit=2))
    await on.gate.set_cap(key_cap("default", "user-1"), 0)

    found = await on.gate.explain_job(waiting)
    assert found is not None
    assert (found.reason, found.subject) == (WaitReason.CAP, "user-1")
    assert (found.facts["cap"], found.facts["running"]) == (0, 0)
    assert await on.gate.forget_limit(key_cap("default", "user-1")) == {LimitKind.CAP}
    assert len(await on.admit(await on.worker())) == 1
