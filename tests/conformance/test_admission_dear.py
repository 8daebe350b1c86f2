"""Admission.admit_jobs with jobs of unequal costs on one bucket: units are kept for the job whose turn it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.breaker import BreakerRule
from headrace.model.fairness import jain_index
from headrace.model.limits import Declared, Gate, Rate
from tests.conformance.scenario import MINUTE, SECOND, Scenario

#: Ten units a second, a hundred at once.
RATE = Rate(10.0, 100.0)
TICK = timedelta(milliseconds=500)
#: Jobs that take a unit each of the same bucket, by a limit of their own.
UNIT = Gate(fair_key="unit", limits=(("tokens", 1.0),))


def tokens(fair_key: str, **gate: object) -> Gate:
    """Return a gate of jobs that take their cost."""
    return Gate(fair_key=fair_key, limits=(("tokens", None),), **gate)  # type: ignore[arg-type]


async def empty_bucket(on: Scenario, **rates: Rate) -> UUID:
    """Return a worker of stores whose bucket `tokens` was just emptied."""
    session = await on.worker(lease=60 * MINUTE)
    await on.gate.declare_limits(Declared(rates={"tokens": RATE, **rates}))
    await on.limiter.take({"tokens": RATE.burst})
    return session


async def wait_for(on: Scenario, session: UUID, job_id: UUID) -> tuple[timedelta, int]:
    """Admit twice a second until a job starts; return how long that took, and how many others started meanwhile."""
    others = 0
    for ticks in range(200):
        started = [job.id for job in await on.admit(session)]
        if job_id in started:
            return ticks * TICK, others
        others += len(started)
        on.clock.advance(TICK)
    pytest.fail(f"not started while {others} others were")


@pytest.mark.parametrize(("cost", "seconds"), [(50.0, 5), (100.0, 10), (150.0, 10)])
async def test_a_dear_job_waits_no_longer_than_its_units_take(on: Scenario, cost: float, seconds: int) -> None:
    """However many cheap ones want the same bucket: units for its cost flow in, or those of a burst, and it starts."""
    session = await empty_bucket(on)
    [dear] = await on.enqueue(gate=tokens("dear"), cost=cost)
    on.clock.advance(timedelta(milliseconds=1))
    await on.enqueue(300, gate=tokens("cheap"))
    await on.enqueue(300, gate=UNIT)

    waited, others = await wait_for(on, session, dear)
    assert waited <= seconds * SECOND + TICK
    assert others == 0


async def test_a_dear_job_that_comes_late_waits_for_its_turn_alone(on: Scenario) -> None:
    """Cheap ones that came before are owed as much as it takes; then it is its turn, and nobody takes its units."""
    session = await empty_bucket(on)
    await on.enqueue(2_000, gate=tokens("cheap"))
    on.clock.advance(5 * SECOND)
    await on.admit(session)
    [dear] = await on.enqueue(gate=tokens("dear"), cost=50.0)

    waited, others = await wait_for(on, session, dear)
    assert waited <= 11 * SECOND
    assert others <= 55


async def test_within_a_share_too(on: Scenario) -> None:
    """A dear job is not passed by cheap ones of its own fair key that came after it."""
    session = await empty_bucket(on)
    [dear] = await on.enqueue(gate=tokens("one", caps=("task:dear",)), cost=50.0)
    on.clock.advance(timedelta(milliseconds=1))
    await on.enqueue(300, gate=tokens("one"))

    waited, others = await wait_for(on, session, dear)
    assert (waited, others) == (5 * SECOND, 0)


async def test_flows_of_unequal_costs_have_equal_shares_of_a_bucket(on: Scenario) -> None:
    """Jain's index by cost is at least 0.95 among flows whose jobs cost 1, 4, 25, 60 and more than the burst."""
    costs = {"1": 1.0, "4": 4.0, "25": 25.0, "60": 60.0, "110": 110.0}
    session = await empty_bucket(on)
    owners: dict[UUID, str] = {}
    for name, cost in costs.items():
        owners.update(dict.fromkeys(await on.enqueue(int(600 / cost) + 10, gate=tokens(name), cost=cost), name))
    used: Counter[str] = Counter()
    for _ in range(110):
        on.clock.advance(2 * SECOND)
        for job in await on.admit(session):
            used[owners[job.id]] += int(costs[owners[job.id]])

    assert jain_index([float(used[name]) for name in costs]) >= 0.95, used
    # Nothing of the bucket is left unused for that.
    assert used.total() >= 110 * 2 * RATE.per_second - RATE.burst


async def test_a_bucket_that_a_dear_job_waits_for_holds_up_no_other(on: Scenario) -> None:
    """Jobs of other buckets, and of none, start as if it were not there."""
    session = await empty_bucket(on, other=Rate(1.0, 5.0))
    await on.enqueue(gate=tokens("dear"), cost=50.0)
    on.clock.advance(timedelta(milliseconds=1))
    await on.enqueue(9, gate=Gate(limits=(("other", 1.0),)))
    await on.enqueue(3, gate=tokens("cheap"))
    plain = await on.enqueue(2)

    started = await on.admit(session)
    assert len(started) == 7
    assert set(plain) <= {job.id for job in started}


async def test_what_flows_in_meanwhile_is_not_kept(on: Scenario) -> None:
    """A job that needs a request too, but waits five seconds for its tokens, leaves requests to others until then."""
    session = await empty_bucket(on, requests=Rate(1.0, 1.0))
    both = Gate(fair_key="dear", limits=(("requests", 1.0), ("tokens", None)))
    [dear] = await on.enqueue(gate=both, cost=50.0)
    on.clock.advance(timedelta(milliseconds=1))
    await on.enqueue(50, gate=Gate(fair_key="cheap", limits=(("requests", 1.0),)))

    waited, others = await wait_for(on, session, dear)
    assert waited <= 5 * SECOND + TICK
    assert others in (4, 5)


async def test_two_contended_buckets_come_together(on: Scenario) -> None:
    """A job that needs much of two buckets starts, though others want each of the two all the time."""
    session = await empty_bucket(on, bytes=Rate(5.0, 50.0))
    await on.limiter.take({"bytes": 50.0})
    [dear] = await on.enqueue(gate=Gate(fair_key="dear", limits=(("bytes", 40.0), ("tokens", 50.0))))
    on.clock.advance(timedelta(milliseconds=1))
    for name in ("bytes", "tokens"):
        await on.enqueue(300, gate=Gate(fair_key=name, limits=((name, 1.0),)))

    waited, others = await wait_for(on, session, dear)
    assert waited <= 8 * SECOND + TICK
    # Tokens that flow in before they are needed go to others.
    assert others >= 25


async def held_by_a_cap(on: Scenario) -> Gate:
    """Return a gate whose cap is full."""
    await on.gate.set_cap("task:none", 0)
    return tokens("held", caps=("task:none",))


async def held_by_a_key(on: Scenario) -> Gate:
    """Return a gate whose key is busy."""
    await on.enqueue(gate=Gate(key="busy", key_limit=1))
    await on.admit(await on.worker())
    return tokens("held", key="busy", key_limit=1)


async def held_by_a_breaker(on: Scenario) -> Gate:
    """Return a gate whose breaker is open."""
    await on.gate.declare_limits(Declared(breakers={"api": BreakerRule(failures=1, cooldown=5 * MINUTE)}))
    await on.gate.set_breaker("api", "open")  # type: ignore[arg-type]
    return tokens("held", breakers=("api",))


async def held_by_a_closed_bucket(on: Scenario) -> Gate:
    """Return a gate with a bucket that is closed."""
    await on.gate.declare_limits(Declared(rates={"shut": RATE}))
    await on.limiter.close_bucket("shut", 5 * MINUTE)
    return Gate(fair_key="held", limits=(("shut", 1.0), ("tokens", 50.0)))


@pytest.mark.parametrize("held_by", [held_by_a_cap, held_by_a_key, held_by_a_breaker, held_by_a_closed_bucket])
async def test_a_job_that_more_than_units_hold_up_keeps_none(on: Scenario, held_by: object) -> None:
    """Units are not left lying for a job that could not start if it had them."""
    session = await empty_bucket(on)
    await on.enqueue(gate=await held_by(on), cost=50.0)  # type: ignore[operator]
    on.clock.advance(SECOND)
    cheap = await on.enqueue(30, gate=tokens("cheap"))

    assert [job.id for job in await on.admit(session)] == cheap[:10]


async def test_the_next_look_is_when_the_dear_job_starts(on: Scenario) -> None:
    """Those behind it are not looked at before, and a cheaper one of the same buckets is behind it as well."""
    session = await empty_bucket(on, requests=Rate(1.0, 1.0))
    both = (("requests", 1.0), ("tokens", None))
    await on.enqueue(gate=Gate(fair_key="a", limits=both), cost=50.0)
    on.clock.advance(SECOND)
    await on.enqueue(gate=Gate(fair_key="b", limits=both))
    await on.enqueue(gate=tokens("c"))

    answer = await on.look(session)
    assert (answer.jobs, answer.look_in) == ([], 4 * SECOND)


async def test_the_next_look_is_when_what_holds_all_up_ends(on: Scenario) -> None:
    """Behind an open breaker jobs that lack few units wait no longer than it is open, whoever comes before them."""
    session = await empty_bucket(on)
    await on.gate.declare_limits(Declared(breakers={"api": BreakerRule(failures=1, cooldown=2 * SECOND)}))
    await on.gate.set_breaker("api", "open")  # type: ignore[arg-type]
    await on.enqueue(gate=tokens("a", breakers=("api",)), cost=90.0)
    on.clock.advance(SECOND)
    await on.enqueue(gate=tokens("b", breakers=("api",)), cost=20.0)

    assert (await on.look(session)).look_in == SECOND


async def give(on: Scenario, session: UUID, units: float) -> tuple[Collection[UUID], float]:
    """Admit with a grant of tokens and return what started, and what of the grant was used."""
    answer = await on.look(session, grants={"tokens": units})
    return [job.id for job in answer.jobs], answer.spent.get("tokens", 0.0)


@pytest.mark.parametrize(("cost", "granted"), [(50.0, 50.0), (150.0, 100.0)])
async def test_grants_are_kept_for_the_dear_job_too(on: Scenario, cost: float, granted: float) -> None:
    """What is granted is used by nobody before the job whose turn it is has enough."""
    session = await empty_bucket(on)
    [dear] = await on.enqueue(gate=tokens("dear"), cost=cost)
    on.clock.advance(timedelta(milliseconds=1))
    await on.enqueue(20, gate=tokens("cheap"))
    await on.enqueue(20, gate=UNIT)

    assert await give(on, session, 10.0) == ([], 0.0)
    assert await give(on, session, granted - 1.0) == ([], 0.0)
    assert await give(on, session, granted) == ([dear], cost)
