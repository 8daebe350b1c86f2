"""Admission.admit_jobs under rate limits: token buckets that all processes share."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from headrace.model.breaker import BreakerRule, BreakerState
from headrace.model.limits import Declared, Gate, Rate
from tests.conformance.scenario import MINUTE, SECOND, Scenario

API = Gate(limits=(("api", 1.0),))
#: Ten at once, two a second.
RATE = Rate(per_second=2.0, burst=10.0)


async def declare(on: Scenario, **rates: Rate) -> None:
    """Declare rates."""
    await on.gate.declare_limits(Declared(rates=rates))


async def level(on: Scenario, name: str = "api") -> float:
    """Return the level of a bucket."""
    [view] = [view for view in (await on.gate.list_limits()).rates if view.name == name]
    return view.level


async def test_a_full_bucket_gives_its_burst_and_then_its_rate(on: Scenario) -> None:
    """Ten start at once, then two a second, to the moment that was foretold."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(40, gate=API)

    answer = await on.look(session)
    assert (len(answer.jobs), answer.look_in) == (10, timedelta(seconds=0.5))
    on.clock.advance(timedelta(seconds=0.499))
    assert await on.admit(session) == []
    on.clock.advance(timedelta(seconds=0.001))
    assert len(await on.admit(session)) == 1
    on.clock.advance(3 * SECOND)
    assert len(await on.admit(session)) == 6


async def test_a_bucket_holds_no_more_than_its_burst(on: Scenario) -> None:
    """An hour without work saves up one burst."""
    session = await on.worker(lease=90 * MINUTE)
    await declare(on, api=RATE)
    await on.enqueue(40, gate=API)
    await on.admit(session)
    on.clock.advance(60 * MINUTE)

    assert len(await on.admit(session)) == 10


@pytest.mark.parametrize(("rate", "units"), [(Rate(1 / 3, 1.0), 1.0), (Rate(7.7, 3.3), 0.7), (Rate(1_000, 5), 5.0)])
async def test_the_moment_that_is_foretold_is_exact(on: Scenario, rate: Rate, units: float) -> None:
    """After `look_in` the next job starts, and at no time more than burst + rate · t units are used."""
    session = await on.worker(lease=60 * MINUTE)
    await declare(on, api=rate)
    await on.enqueue(40, gate=Gate(limits=(("api", units),)))
    began, used = on.clock.now(), 0.0
    for _ in range(12):
        answer = await on.look(session)
        assert answer.jobs
        used += units * len(answer.jobs)
        assert used <= rate.burst + rate.per_second * (on.clock.now() - began).total_seconds() + 0.01
        assert answer.look_in
        on.clock.advance(answer.look_in)


async def test_a_limit_may_take_more_than_one_unit(on: Scenario) -> None:
    """Jobs of four units start two at a time from a bucket of ten."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(5, gate=Gate(limits=(("api", 4.0),)))

    answer = await on.look(session)
    assert (len(answer.jobs), answer.look_in) == (2, SECOND)


async def test_a_limit_may_take_the_cost_of_the_job(on: Scenario) -> None:
    """Without units of its own a limit takes what the job costs: tokens, for example."""
    session = await on.worker()
    await declare(on, tokens=Rate(100.0, 1_000.0))
    gate = Gate(limits=(("tokens", None),))
    await on.enqueue(3, gate=gate, cost=300.0)
    await on.enqueue(3, gate=gate, cost=50.0, priority=9)

    assert len(await on.admit(session)) == 5
    assert await level(on, "tokens") == pytest.approx(0.0)


async def test_a_job_dearer_than_the_burst_leaves_a_debt(on: Scenario) -> None:
    """It starts when the bucket is full, and nothing else does until time has paid for it."""
    session = await on.worker(lease=10 * MINUTE)
    await declare(on, api=RATE)
    [dear] = await on.enqueue(gate=Gate(limits=(("api", 30.0),)))
    on.clock.advance(SECOND)
    await on.enqueue(gate=API)

    assert [job.id for job in await on.admit(session)] == [dear]
    assert await level(on) == pytest.approx(-20.0)
    assert (await on.look(session)).look_in == timedelta(seconds=10.5)
    on.clock.advance(timedelta(seconds=10.5))
    assert len(await on.admit(session)) == 1


async def test_a_rate_of_a_queue_holds_for_all_its_jobs(on: Scenario) -> None:
    """`queue:NAME` takes one unit of each job of that queue, those without a gate too, whatever they cost."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(rates={"queue:default": Rate(1.0, 3.0)}))
    await on.enqueue(3, cost=50.0)
    await on.enqueue(3, gate=API)
    await on.enqueue(5, gate=API, queue="other")

    assert len(await on.admit(session)) == 3
    assert len(await on.admit(session, queue="other")) == 5


async def test_a_bucket_is_shared_by_queues(on: Scenario) -> None:
    """What one queue takes another does not find."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(7, gate=API, queue="left")
    await on.enqueue(7, gate=API, queue="right")

    assert [len(await on.admit(session, queue=queue)) for queue in ("left", "right")] == [7, 3]


async def test_a_job_takes_of_all_its_buckets_or_of_none(on: Scenario) -> None:
    """A job that lacks one bucket leaves the other alone, and other jobs may have it."""
    session = await on.worker()
    await declare(on, api=RATE, rare=Rate(0.01, 1.0))
    await on.enqueue(3, gate=Gate(limits=(("api", 3.0), ("rare", 1.0))))
    on.clock.advance(SECOND)
    await on.enqueue(10, gate=API)

    assert len(await on.admit(session)) == 8
    assert await level(on) == pytest.approx(0.0)


async def test_what_waits_for_a_rate_holds_no_slot(on: Scenario) -> None:
    """Jobs that need no bucket pass a thousand that wait for one."""
    session = await on.worker()
    await declare(on, api=Rate(0.01, 1.0))
    await on.enqueue(300, gate=API)
    on.clock.advance(SECOND)
    plain = await on.enqueue(3)

    claimed = [job.id for job in await on.admit(session, 4)]
    assert len(claimed) == 4
    assert set(plain) <= set(claimed)


async def test_a_bucket_that_nobody_declared_is_no_limit(on: Scenario) -> None:
    """A limit without a rate lets everything pass."""
    await on.enqueue(20, gate=API)

    assert len(await on.admit(await on.worker())) == 20


async def test_a_closed_bucket_lets_nothing_pass(on: Scenario) -> None:
    """For as long as the provider said, however full it is; a shorter word does not open it earlier."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(20, gate=API)
    await on.limiter.close_bucket("api", 5 * SECOND)
    await on.limiter.close_bucket("api", SECOND)

    assert (await on.look(session)).look_in == 5 * SECOND
    on.clock.advance(timedelta(seconds=4.9))
    assert await on.admit(session) == []
    on.clock.advance(timedelta(seconds=0.1))
    assert len(await on.admit(session)) == 10


async def test_a_bucket_without_a_rate_can_be_closed(on: Scenario) -> None:
    """A name that was only closed, and never declared, is shut for that long and no limit afterwards."""
    session = await on.worker()
    await on.limiter.close_bucket("api", 5 * SECOND)
    await on.enqueue(20, gate=API)

    assert (await on.look(session)).look_in == 5 * SECOND
    on.clock.advance(5 * SECOND)
    assert len(await on.admit(session)) == 20


async def test_the_limiter_takes_from_the_same_bucket(on: Scenario) -> None:
    """Calls that are not jobs and jobs share what there is."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(20, gate=API)
    assert (await on.limiter.take({"api": 7.0})).units == {"api": 7.0}

    assert len(await on.admit(session)) == 3
    await on.limiter.give_back({"api": 2.0})
    assert len(await on.admit(session)) == 2


async def test_a_new_rate_keeps_the_level(on: Scenario) -> None:
    """Declaring or overriding a rate fills nothing up, and empties only what exceeds the new burst."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(40, gate=API)
    await on.admit(session, 4)

    await declare(on, api=Rate(2.0, 50.0))
    assert await level(on) == pytest.approx(6.0)
    await on.gate.set_rate("api", Rate(1.0, 3.0))
    assert await level(on) == pytest.approx(3.0)
    await on.gate.set_rate("api", None)
    assert await level(on) == pytest.approx(3.0)
    on.clock.advance(SECOND)
    assert await level(on) == pytest.approx(5.0)


async def test_an_operator_overrides_a_rate(on: Scenario) -> None:
    """An override outlasts what an app declares again, and shows beside it."""
    session = await on.worker()
    await on.gate.set_rate("api", Rate(1.0, 2.0))
    await declare(on, api=RATE)
    await on.enqueue(40, gate=API)

    answer = await on.look(session)
    assert (len(answer.jobs), answer.look_in) == (2, SECOND)
    [view] = (await on.gate.list_limits()).rates
    assert (view.name, view.declared, view.override, view.rate) == ("api", RATE, Rate(1.0, 2.0), Rate(1.0, 2.0))


async def test_rates_are_listed_alone(on: Scenario) -> None:
    """As they are among all limits, by name."""
    await declare(on, tokens=RATE, api=RATE)
    await on.gate.set_rate("api", Rate(1.0, 2.0))
    await on.limiter.close_bucket("tokens", SECOND)

    rates = await on.gate.list_rates()
    assert [view.name for view in rates] == ["api", "tokens"]
    assert rates == (await on.gate.list_limits()).rates


async def test_time_before_a_new_rate_counts_by_the_old_one(on: Scenario) -> None:
    """A bucket fills by the rate that held at the time."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(10, gate=API)
    await on.admit(session)
    on.clock.advance(SECOND)
    await on.gate.set_rate("api", Rate(5.0, 10.0))
    on.clock.advance(SECOND)

    assert await level(on) == pytest.approx(7.0)


async def test_racing_workers_take_no_more_than_the_burst(on: Scenario) -> None:
    """Eight that admit from two queues at the same time start ten jobs together."""
    await declare(on, api=RATE)
    for queue in ("left", "right"):
        await on.enqueue(20, gate=API, queue=queue)

    async def work(queue: str) -> int:
        return len(await on.admit(await on.worker(), 3, queue=queue))

    counts = await asyncio.gather(*(work(queue) for queue in ("left", "right") * 4))
    assert sum(counts) == 10


# Units from a limiter that is not this store


async def test_grants_stand_for_the_buckets(on: Scenario) -> None:
    """With grants the buckets of the store are left alone, and the answer tells what was used."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(20, gate=Gate(limits=(("api", 2.0),)))

    answer = await on.look(session, grants={"api": 7.0})
    assert (len(answer.jobs), dict(answer.spent)) == (3, {"api": 6.0})
    assert await level(on) == pytest.approx(10.0)


async def test_what_was_not_granted_gives_nothing(on: Scenario) -> None:
    """A declared bucket that is not among the grants holds its jobs back; a name that is no limit does not."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(5, gate=API)
    free = await on.enqueue(2, gate=Gate(limits=(("unknown", 1.0),)))

    answer = await on.look(session, grants={})
    assert (sorted(job.id for job in answer.jobs), dict(answer.spent)) == (free, {})


async def test_the_limiter_knows_when_grants_come(on: Scenario) -> None:
    """Jobs that lack grants are let through by no time that this store could tell."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(5, gate=API)

    assert (await on.look(session, grants={"api": 3.0})).look_in is None
    answer = await on.look(session, 1, grants={"api": 2.0})
    assert (len(answer.jobs), answer.look_in) == (1, timedelta())


async def test_grants_are_not_exceeded(on: Scenario) -> None:
    """A job dearer than the burst takes nothing either that was not granted: whoever grants has its debt to keep."""
    session = await on.worker()
    await declare(on, api=RATE)
    await on.enqueue(5, gate=Gate(limits=(("api", None),)), cost=30.0)

    for units, started in ((10.0, 0), (29.0, 0), (30.0, 1), (65.0, 2)):
        answer = await on.look(session, grants={"api": units})
        assert (len(answer.jobs), answer.spent.get("api", 0.0)) == (started, 30.0 * started)


async def test_what_grants_were_too_few_for_is_told(on: Scenario) -> None:
    """Of each bucket the units of the job whose turn it is; where there were enough, or no grants, nothing."""
    session = await on.worker()
    await declare(on, api=RATE, tokens=RATE)
    await on.enqueue(3, gate=Gate(limits=(("api", 1.0), ("tokens", 1.0))))
    on.clock.advance(SECOND)
    await on.enqueue(1, gate=Gate(limits=(("api", 4.0),)))

    assert (await on.look(session, grants={})).short == {"api": 1.0, "tokens": 1.0}
    assert (await on.look(session, grants={"api": 1.0})).short == {"api": 4.0, "tokens": 1.0}
    answer = await on.look(session, grants={"api": 100.0, "tokens": 2.0})
    assert (len(answer.jobs), answer.short) == (3, {"tokens": 1.0})
    answer = await on.look(session)
    assert (len(answer.jobs), answer.short) == (1, {})


async def test_who_waits_for_something_else_is_short_of_nothing(on: Scenario) -> None:
    """Units would not help a job that a cap holds as well, nor one behind a breaker that is open."""
    session = await on.worker()
    rule = BreakerRule(failures=1, cooldown=MINUTE)
    await on.gate.declare_limits(Declared({"task:a": 0}, {"api": RATE}, {"guard": rule}))
    await on.gate.set_breaker("guard", BreakerState.OPEN)
    await on.enqueue(1, gate=Gate(limits=(("api", 1.0),), caps=("task:a",)))
    await on.enqueue(1, gate=Gate(limits=(("api", 1.0),), breakers=("guard",)))
    assert (await on.look(session, grants={})).short == {}

    await on.enqueue(1, gate=Gate(limits=(("api", 3.0),)))
    assert (await on.look(session, grants={})).short == {"api": 3.0}


async def test_returning_to_the_declared_rate_makes_no_bucket(on: Scenario) -> None:
    """An override that was never set is taken back: a mistyped name stays unknown."""
    await on.gate.set_rate("typo", None)
    assert (await on.gate.list_limits()).rates == ()
