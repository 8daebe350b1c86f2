"""Admission.eligible_jobs: what could start now if there were slots, and what holds the rest."""

from __future__ import annotations

import pytest

from headrace.model.batch import NewBatch
from headrace.model.breaker import BreakerRule, BreakerState, OnOpen
from headrace.model.elastic import Eligible
from headrace.model.job import JobSpec, JobState
from headrace.model.limits import Declared, Gate, Level, Rate
from tests.conformance.scenario import SECOND, Scenario, items

MANY = 1_000
LEAST = SECOND * 0


async def eligible(on: Scenario, queue: str = "default", *, at_most: int = MANY) -> Eligible:
    """Count."""
    return await on.gate.eligible_jobs(queue, at_most=at_most)


async def test_an_empty_queue(on: Scenario) -> None:
    """Nothing, held by nothing, served by nobody."""
    assert await eligible(on) == Eligible()


async def test_ready_jobs_of_a_plain_queue_up_to_the_bound(on: Scenario) -> None:
    """Neither those that run nor those that are scheduled, nor those of another queue; no further than asked."""
    session = await on.worker()
    await on.enqueue(9)
    await on.enqueue(5, queue="other")
    first, _ = await on.claim(session, 2)
    await on.end(session, first, state=JobState.SCHEDULED, delay=SECOND)

    assert await eligible(on) == Eligible(jobs=7, workers=1)
    assert (await eligible(on, at_most=4)).jobs == 4


async def test_the_bound_is_for_each_live_worker(on: Scenario) -> None:
    """Two serve the queue, one another, and one is dead."""
    for queues in ({"default": 1}, {"default": 1}, {"other": 1}):
        await on.worker(queues=queues)
    await on.worker(lease=SECOND)
    await on.enqueue(9)
    on.clock.advance(2 * SECOND)

    assert await eligible(on, at_most=3) == Eligible(jobs=6, workers=2)


async def test_nothing_of_a_paused_queue(on: Scenario) -> None:
    """With a gate or without."""
    await on.enqueue(3)
    await on.stores.control.set_queue_paused("default", paused=True)
    assert await eligible(on) == Eligible(held_by="paused")
    await on.enqueue(3, gate=Gate(caps=("task:work",)))
    assert await eligible(on) == Eligible(held_by="paused")


async def test_jobs_behind_a_full_cap_are_not_eligible(on: Scenario) -> None:
    """All of them while there is room, and how much there is; none from then on."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"queue:default": 3}))
    await on.enqueue(9)
    assert await eligible(on) == Eligible(jobs=9, room=3, workers=1)

    [job] = await on.admit(session, 1)
    assert await eligible(on) == Eligible(jobs=8, room=2, workers=1)
    await on.admit(session, 2)
    assert await eligible(on) == Eligible(held_by="cap queue:default", workers=1)
    await on.end(session, job)
    assert await eligible(on) == Eligible(jobs=6, room=1, workers=1)


async def test_the_room_is_that_of_the_lane_with_the_most(on: Scenario) -> None:
    """Of two caps of one lane the smaller counts, of two lanes the larger, and one without a cap has any room."""
    await on.gate.declare_limits(Declared(caps={"a": 2, "b": 5, "c": 4}))
    await on.enqueue(3, gate=Gate(caps=("a", "b")))
    assert await eligible(on) == Eligible(jobs=3, room=2)
    await on.enqueue(3, gate=Gate(caps=("c",)))
    assert await eligible(on) == Eligible(jobs=6, room=4)
    await on.enqueue(3, gate=Gate(caps=("unknown",)))
    assert await eligible(on) == Eligible(jobs=9)


async def test_a_full_cap_holds_its_lane_alone(on: Scenario) -> None:
    """Jobs of other lanes, and those without a gate, could start."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"one": 1}))
    await on.enqueue(4, gate=Gate(caps=("one",)))
    await on.admit(session, 1)
    await on.enqueue(5)
    await on.enqueue(2, gate=Gate(caps=("other",)))

    assert await eligible(on) == Eligible(jobs=7, held_by="cap one", workers=1)


async def test_of_a_concurrency_key_as_many_as_it_has_room_for(on: Scenario) -> None:
    """A hundred jobs of one user, one at a time, are one job; two users are two."""
    session = await on.worker()
    await on.enqueue(6, gate=Gate(key="ann", key_limit=1))
    await on.enqueue(6, gate=Gate(key="bob", key_limit=2))
    assert await eligible(on) == Eligible(jobs=3, workers=1)

    await on.admit(session, 1)
    assert (await eligible(on)).jobs == 2
    await on.admit(session)
    assert await eligible(on) == Eligible(held_by="cap ann", workers=1)


async def test_jobs_without_units_are_not_eligible(on: Scenario) -> None:
    """A rate limit that has no units holds its jobs, until they have flowed in."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(rates={"api": Rate(1.0, 2.0)}))
    await on.enqueue(9, gate=Gate(limits=(("api", 1.0),)))
    assert await eligible(on) == Eligible(jobs=9, workers=1, units=2)

    await on.admit(session)
    assert await eligible(on) == Eligible(held_by="rate api", workers=1)
    on.clock.advance(SECOND)
    assert await eligible(on) == Eligible(jobs=7, workers=1, units=1)


async def test_of_units_the_lane_counts_that_has_them_for_the_most(on: Scenario) -> None:
    """Of two rates of one lane the smaller counts, of two lanes the larger; one dearer than the burst is one."""
    rates = {"a": Rate(1.0, 9.0), "b": Rate(1.0, 4.0), "dear": Rate(1.0, 2.0), "queue:default": Rate(1.0, 100.0)}
    await on.gate.declare_limits(Declared(rates=rates))
    await on.enqueue(3, gate=Gate(limits=(("a", 1.5), ("b", 1.0))))
    assert await eligible(on) == Eligible(jobs=3, units=4)
    await on.enqueue(3, gate=Gate(limits=(("dear", 5.0),)))
    assert (await eligible(on)).units == 4
    await on.enqueue(3, gate=Gate(limits=(("a", 1.0),)))
    assert (await eligible(on)).units == 9
    await on.enqueue(3, gate=Gate(limits=(("unknown", 1.0),)))
    assert await eligible(on) == Eligible(jobs=12, units=100)


async def test_a_lane_without_rates_has_any_number_of_units(on: Scenario) -> None:
    """Beside one that has some."""
    await on.gate.declare_limits(Declared(rates={"a": Rate(1.0, 9.0)}))
    await on.enqueue(3, gate=Gate(limits=(("a", 1.0),)))
    await on.enqueue(3)
    assert await eligible(on) == Eligible(jobs=6)


async def test_a_closed_bucket_holds_its_jobs(on: Scenario) -> None:
    """As the pool of a model whose quota is used up does."""
    await on.gate.declare_limits(Declared(rates={"jobs:fake": Rate(100.0, 100.0)}))
    await on.enqueue(4, gate=Gate(limits=(("jobs:fake", 1.0),)))
    await on.limiter.close_bucket("jobs:fake", 5 * SECOND)
    assert await eligible(on) == Eligible(held_by="rate jobs:fake")


async def test_levels_that_are_counted_elsewhere(on: Scenario) -> None:
    """They stand for those of the store; one that is not known there is empty."""
    await on.gate.declare_limits(Declared(rates={"api": Rate(1.0, 1.0)}))
    await on.enqueue(4, gate=Gate(limits=(("api", 1.0),)))
    for levels, found in (
        ({"api": Level(1.0)}, Eligible(jobs=4, units=1)),
        ({"api": Level(0.5)}, Eligible(held_by="rate api")),
        ({"api": Level(1.0, SECOND)}, Eligible(held_by="rate api")),
        ({}, Eligible(held_by="rate api")),
    ):
        assert await on.gate.eligible_jobs("default", at_most=MANY, levels=levels) == found


@pytest.mark.parametrize("on_open", list(OnOpen))
async def test_jobs_behind_a_breaker(on: Scenario, on_open: OnOpen) -> None:
    """None while it is open, one when it tries again, all once it is closed."""
    await on.gate.declare_limits(Declared(breakers={"api": BreakerRule(cooldown=5 * SECOND, on_open=on_open)}))
    await on.enqueue(4, gate=Gate(breakers=("api",)))
    assert await eligible(on) == Eligible(jobs=4)

    await on.gate.set_breaker("api", BreakerState.OPEN)
    assert await eligible(on) == Eligible(held_by="breaker api")
    on.clock.advance(5 * SECOND)
    assert await eligible(on) == Eligible(jobs=1)


async def test_what_holds_is_told_in_the_order_of_reasons(on: Scenario) -> None:
    """A breaker before a rate before a cap."""
    session = await on.worker()
    declared = Declared(
        caps={"one": 1}, rates={"api": Rate(0.001, 1.0)}, breakers={"wire": BreakerRule(cooldown=5 * SECOND)}
    )
    await on.gate.declare_limits(declared)
    await on.enqueue(2, gate=Gate(caps=("one",)))
    await on.enqueue(2, gate=Gate(limits=(("api", 1.0),)))
    await on.admit(session)
    assert (await eligible(on)).held_by == "rate api"
    await on.enqueue(gate=Gate(breakers=("wire",)))
    await on.gate.set_breaker("wire", BreakerState.OPEN)
    assert (await eligible(on)).held_by == "breaker wire"


async def test_jobs_of_a_batch_being_cancelled_are_not_eligible(on: Scenario) -> None:
    """Once they are settled at the latest."""
    gate = Gate(caps=("task:work",))
    batch_id = await on.stores.batches.create_batch(NewBatch(JobSpec("work", gate=gate)), items(3))
    await on.enqueue(2)
    await on.stores.batches.cancel_batch(batch_id)
    assert (await eligible(on)).jobs == 2
