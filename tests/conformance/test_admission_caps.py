"""Admission.admit_jobs under caps: how many jobs run at once, counted from what runs."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from headrace.model.admission import CapView
from headrace.model.job import JobState
from headrace.model.limits import Declared, Gate
from tests.conformance.scenario import LEASE, SECOND, Scenario

RENDER = Gate(caps=("task:render",))


async def declare(on: Scenario, **caps: int) -> None:
    """Declare caps of tasks."""
    await on.gate.declare_limits(Declared(caps={f"task:{name}": cap for name, cap in caps.items()}))


async def test_a_cap_limits_what_runs_at_once(on: Scenario) -> None:
    """No more jobs under a cap run than it says, within one admission and over many."""
    session = await on.worker()
    await declare(on, render=3)
    await on.enqueue(10, gate=RENDER)

    assert [len(await on.admit(session, limit)) for limit in (2, 10, 10)] == [2, 1, 0]


async def test_a_cap_holds_over_workers_and_queues(on: Scenario) -> None:
    """A cap counts every running job that names it, whoever runs it and whatever its queue."""
    await declare(on, render=2)
    await on.enqueue(2, queue="left", gate=RENDER)
    await on.enqueue(2, queue="right", gate=RENDER)

    assert len(await on.admit(await on.worker(), 1, queue="left")) == 1
    assert len(await on.admit(await on.worker(), queue="right")) == 1
    assert await on.admit(await on.worker(), queue="left") == []


async def test_a_cap_of_a_queue_counts_all_its_jobs(on: Scenario) -> None:
    """`queue:NAME` holds for the jobs of that queue, those without a gate too, and for no other queue."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"queue:default": 3}))
    await on.enqueue(3)
    await on.enqueue(3, gate=RENDER)
    await on.enqueue(3, gate=RENDER, queue="other")

    assert len(await on.admit(session)) == 3
    assert len(await on.admit(session, queue="other")) == 3


async def test_a_job_that_names_the_cap_of_its_own_queue_counts_once(on: Scenario) -> None:
    """Whether a gate names the queue's cap or not, a running job takes one place of it."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"queue:default": 4}))
    await on.enqueue(6, gate=Gate(caps=("queue:default",)))

    assert len(await on.admit(session, 1)) == 1
    assert len(await on.admit(session)) == 3
    [cap] = (await on.gate.list_limits()).caps
    assert cap.running == 4


async def test_an_ended_job_frees_its_place(on: Scenario) -> None:
    """A place is free again once its job ended, went back, or was rescued."""
    session = await on.worker()
    await declare(on, render=1)
    await on.enqueue(3, gate=RENDER)

    await on.end(session, *await on.admit(session))
    [second] = await on.admit(session)
    await on.end(session, second, state=JobState.SCHEDULED, delay=SECOND)
    [third] = await on.admit(session)
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    [again] = await on.admit(await on.worker())
    assert again.id == third.id


async def test_a_cap_that_nobody_declared_is_no_limit(on: Scenario) -> None:
    """A name without a cap limits nothing."""
    await on.enqueue(20, gate=RENDER)

    assert len(await on.admit(await on.worker())) == 20


async def test_a_cap_of_zero_lets_nothing_start(on: Scenario) -> None:
    """A cap of zero holds back every job that names it, and no other."""
    await on.gate.set_cap("task:render", 0)
    await on.enqueue(2, gate=RENDER)
    [plain] = await on.enqueue()

    assert [job.id for job in await on.admit(await on.worker())] == [plain]


async def test_an_operator_overrides_a_cap(on: Scenario) -> None:
    """An override holds at once, outlasts what an app declares again, and ends where the declared cap returns."""
    session = await on.worker()
    await declare(on, render=1)
    await on.enqueue(20, gate=RENDER)
    assert len(await on.admit(session)) == 1

    await on.gate.set_cap("task:render", 4)
    assert len(await on.admit(session)) == 3
    await declare(on, render=9)
    assert await on.admit(session) == []
    await on.gate.set_cap("task:render", None)
    assert len(await on.admit(session)) == 5


async def test_a_cap_below_what_runs_stops_nothing(on: Scenario) -> None:
    """Running jobs go on under a lowered cap; the next starts when fewer run than it says."""
    session = await on.worker()
    await declare(on, render=3)
    await on.enqueue(10, gate=RENDER)
    jobs = await on.admit(session)
    await on.gate.set_cap("task:render", 1)

    await on.end(session, *jobs[:2])
    assert await on.admit(session) == []
    await on.end(session, jobs[2])
    assert len(await on.admit(session)) == 1


async def test_every_cap_of_a_job_needs_room(on: Scenario) -> None:
    """A job that names two caps starts only under both, and uses a place of each."""
    session = await on.worker()
    await declare(on, render=5, disk=2)
    await on.enqueue(4, gate=Gate(caps=("task:render", "task:disk")))
    on.clock.advance(SECOND)
    await on.enqueue(4, gate=RENDER)

    await on.admit(session)
    caps = {view.key: view.running for view in (await on.gate.list_limits()).caps}
    assert caps == {"task:render": 5, "task:disk": 2}


async def test_a_saturated_cap_holds_up_no_other_job(on: Scenario) -> None:
    """Jobs behind other caps, and plain ones, pass those that wait."""
    session = await on.worker()
    await declare(on, render=1, mail=1)
    await on.enqueue(50, gate=RENDER)
    on.clock.advance(SECOND)
    [mail] = await on.enqueue(gate=Gate(caps=("task:mail",)))
    plain = await on.enqueue(3)

    claimed = [job.id for job in await on.admit(session, 5)]
    assert len(claimed) == 5
    assert {mail, *plain} <= set(claimed)


async def test_caps_are_listed_with_what_runs(on: Scenario) -> None:
    """The list tells what was declared, what an operator set, what holds and how many run."""
    await declare(on, render=3, idle=1)
    await on.gate.set_cap("task:render", 2)
    await on.enqueue(5, gate=RENDER)
    await on.admit(await on.worker())

    [idle, render] = (await on.gate.list_limits()).caps
    assert (idle, idle.cap) == (CapView("task:idle", 1, None, 0), 1)
    assert (render, render.cap) == (CapView("task:render", 3, 2, 2), 2)


@pytest.mark.parametrize("cap", [1, 3])
@pytest.mark.parametrize("queues", [("default",), ("left", "right")], ids=["one queue", "two queues"])
async def test_eight_racing_workers_never_run_over_a_cap(on: Scenario, cap: int, queues: tuple[str, ...]) -> None:
    """Eight that admit and finish at the same time, in one queue or two, never run more jobs than the cap says."""
    await declare(on, render=cap)
    ids = [job_id for queue in queues for job_id in await on.enqueue(40 // len(queues), gate=RENDER, queue=queue)]
    done: list[UUID] = []
    running: set[UUID] = set()
    most = 0

    async def work(number: int) -> None:
        nonlocal most
        session = await on.worker()
        while len(done) < len(ids):
            jobs = await on.admit(session, 5, queue=queues[number % len(queues)])
            running.update(job.id for job in jobs)
            most = max(most, len(running))
            await asyncio.sleep(0)
            # Out of the count before the store frees the places: a job is never counted when it no longer runs.
            running.difference_update(job.id for job in jobs)
            done.extend(await on.end(session, *jobs))

    await asyncio.gather(*(work(number) for number in range(8)))
    assert sorted(done) == sorted(ids)
    assert most == cap
