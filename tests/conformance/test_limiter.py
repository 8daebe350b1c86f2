"""Limiter: token buckets that are taken from without a job."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from headrace.model.limits import Level, Rate
from headrace.ports.limiter import Limiter
from tests.conformance.scenario import MINUTE, SECOND, Scenario

#: Ten at once, two a second.
RATE = Rate(per_second=2.0, burst=10.0)


async def filled(on: Scenario, **rates: Rate) -> Limiter:
    """Declare buckets and let them fill."""
    await on.limiter.declare(rates)
    on.clock.advance(60 * MINUTE)
    return on.limiter


async def left(limiter: Limiter, name: str = "api") -> float:
    """Take all that is there and return how much it was."""
    return (await limiter.take({name: 1_000.0}, some=True)).units.get(name, 0.0)


async def test_what_is_there_is_given(on: Scenario) -> None:
    """Units are taken until too few are left; the answer says when to ask again."""
    limiter = await filled(on, api=RATE)
    assert (await limiter.take({"api": 7.0})).units == {"api": 7.0}

    refused = await limiter.take({"api": 7.0})
    assert (refused.units, refused.wait, refused.unknown) == ({}, 2 * SECOND, frozenset())
    on.clock.advance(refused.wait)
    assert (await limiter.take({"api": 7.0})).units == {"api": 7.0}


async def test_a_bucket_that_was_not_known_starts_empty(on: Scenario) -> None:
    """Its burst may have been used just before it was forgotten."""
    await on.limiter.declare({"api": RATE})

    refused = await on.limiter.take({"api": 1.0})
    assert (refused.units, refused.wait) == ({}, timedelta(seconds=0.5))


async def test_a_bucket_never_holds_more_than_its_burst(on: Scenario) -> None:
    """Neither time nor what is given back fills it further."""
    limiter = await filled(on, api=RATE)
    await limiter.give_back({"api": 50.0})

    assert await left(limiter) == pytest.approx(10.0)


async def test_all_or_nothing_is_taken(on: Scenario) -> None:
    """Where one bucket has not enough, the others keep theirs."""
    limiter = await filled(on, api=RATE, tokens=Rate(1.0, 5.0))
    await limiter.take({"tokens": 4.0})

    refused = await limiter.take({"api": 1.0, "tokens": 4.0})
    assert (refused.units, refused.wait) == ({}, 3 * SECOND)
    assert await left(limiter) == pytest.approx(10.0)


async def test_some_takes_what_is_there(on: Scenario) -> None:
    """Of each bucket up to what is wanted, and a wait where something was missing."""
    limiter = await filled(on, api=RATE, tokens=Rate(1.0, 5.0))
    await limiter.take({"tokens": 4.0})

    taken = await limiter.take({"api": 3.0, "tokens": 4.0}, some=True)
    assert taken.units == {"api": 3.0, "tokens": pytest.approx(1.0)}
    assert taken.wait > timedelta()
    assert (await limiter.take({"api": 3.0}, some=True)).wait == timedelta()


async def test_some_of_nothing_is_nothing(on: Scenario) -> None:
    """An empty bucket gives no units, and none that are below zero."""
    limiter = await filled(on, api=RATE)
    await limiter.take({"api": 30.0})

    taken = await limiter.take({"api": 5.0}, some=True)
    assert (taken.units.get("api", 0.0), taken.wait > timedelta()) == (0.0, True)


async def test_some_is_at_least_what_is_of_use(on: Scenario) -> None:
    """Of a bucket that has less than its least nothing is taken, of others it is; then one is told when to ask."""
    limiter = await filled(on, api=RATE, tokens=Rate(1.0, 5.0))
    await limiter.take({"tokens": 4.0})

    taken = await limiter.take({"api": 8.0, "tokens": 5.0}, some=True, least={"api": 2.0, "tokens": 3.0})
    assert (taken.units, taken.wait) == ({"api": 8.0, "tokens": 0.0}, 2 * SECOND)
    on.clock.advance(taken.wait)
    taken = await limiter.take({"api": 8.0, "tokens": 5.0}, some=True, least={"api": 2.0, "tokens": 3.0})
    assert (taken.units, taken.wait) == ({"api": pytest.approx(6.0), "tokens": pytest.approx(3.0)}, SECOND)


async def test_a_least_above_the_burst_leaves_a_debt(on: Scenario) -> None:
    """A full bucket gives it, and whoever asks next waits for all of it to be paid; one that is closed does not."""
    limiter = await filled(on, api=RATE)
    await limiter.take({"api": 1.0})
    assert (await limiter.take({"api": 30.0}, some=True, least={"api": 30.0})).wait == timedelta(seconds=0.5)
    on.clock.advance(timedelta(seconds=0.5))
    assert (await limiter.take({"api": 30.0}, some=True, least={"api": 30.0})).units == {"api": 30.0}

    assert await limiter.levels(["api"]) == {"api": Level(pytest.approx(-20.0))}
    refused = await limiter.take({"api": 30.0}, some=True, least={"api": 30.0})
    assert (refused.units, refused.wait) == ({"api": 0.0}, 15 * SECOND)
    on.clock.advance(15 * SECOND)
    await limiter.close_bucket("api", SECOND)
    assert (await limiter.take({"api": 30.0}, some=True, least={"api": 30.0})).wait == SECOND


async def test_more_than_the_burst_leaves_a_debt(on: Scenario) -> None:
    """A full bucket lets it pass, and nothing else until time has paid for it."""
    limiter = await filled(on, api=RATE)
    assert (await limiter.take({"api": 30.0})).units == {"api": 30.0}

    assert (await limiter.take({"api": 1.0})).wait == timedelta(seconds=10.5)


async def test_unknown_buckets_are_named(on: Scenario) -> None:
    """All-or-nothing takes nothing where a bucket is not declared; some takes of those that are."""
    limiter = await filled(on, api=RATE)
    refused = await limiter.take({"api": 1.0, "new": 1.0})
    assert (refused.units, refused.unknown) == ({}, frozenset({"new"}))

    taken = await limiter.take({"api": 1.0, "new": 1.0}, some=True)
    assert (taken.units, taken.unknown) == ({"api": 1.0}, frozenset({"new"}))


async def test_a_closed_bucket_gives_nothing(on: Scenario) -> None:
    """For as long as was said, however full; a shorter word does not open it earlier."""
    limiter = await filled(on, api=RATE)
    await limiter.close_bucket("api", 5 * SECOND)
    await limiter.close_bucket("api", SECOND)

    assert (await limiter.take({"api": 1.0})).wait == 5 * SECOND
    assert await left(limiter) == 0.0
    on.clock.advance(5 * SECOND)
    assert await left(limiter) == pytest.approx(10.0)


async def test_a_closed_bucket_is_opened(on: Scenario) -> None:
    """Before its time is over, and as full as it is; what is open, or unknown, stays so."""
    limiter = await filled(on, api=RATE)
    await limiter.close_bucket("api", 60 * MINUTE)
    for name in ("api", "api", "unheard"):
        await limiter.open_bucket(name)

    assert await limiter.levels(["api", "unheard"]) == {"api": Level(pytest.approx(10.0))}
    assert await left(limiter) == pytest.approx(10.0)


async def test_levels_are_read_without_taking(on: Scenario) -> None:
    """What a bucket has, a debt too, and how long it is closed; one without a rate here is left out."""
    limiter = await filled(on, api=RATE, tokens=Rate(1.0, 5.0))
    await limiter.take({"api": 30.0})
    for name in ("api", "tokens", "new"):
        await limiter.close_bucket(name, 5 * SECOND)
    on.clock.advance(2 * SECOND)

    for _ in range(2):
        assert await limiter.levels(["api", "tokens", "new", "unheard"]) == {
            "api": Level(pytest.approx(-16.0), 3 * SECOND),
            "tokens": Level(pytest.approx(5.0), 3 * SECOND),
        }
    on.clock.advance(3 * SECOND)
    assert await limiter.levels(["api"]) == {"api": Level(pytest.approx(-10.0))}
    assert await limiter.levels([]) == {}


async def test_a_forgotten_bucket_is_not_known(on: Scenario) -> None:
    """Its rate, level and closing are gone; declared again it begins as a new one. Others stay."""
    limiter = await filled(on, api=RATE, tokens=RATE)
    await limiter.close_bucket("api", 5 * SECOND)
    for _ in range(2):
        await limiter.forget("api")

    assert (await limiter.take({"api": 1.0})).unknown == {"api"}
    assert set(await limiter.levels(["api", "tokens"])) == {"tokens"}
    await limiter.declare({"api": RATE})
    assert await limiter.levels(["api"]) == {"api": Level(0.0)}


async def test_declaring_again_keeps_the_level(on: Scenario) -> None:
    """A process that starts fills nothing up; a smaller burst takes what exceeds it."""
    limiter = await filled(on, api=RATE)
    await limiter.take({"api": 4.0})
    await limiter.declare({"api": Rate(2.0, 50.0)})
    assert (await limiter.take({"api": 7.0})).wait == timedelta(seconds=0.5)

    await limiter.declare({"api": Rate(2.0, 3.0)})
    assert await left(limiter) == pytest.approx(3.0)


async def test_nothing_wanted_is_given(on: Scenario) -> None:
    """Asking for nothing waits for nothing."""
    taken = await on.limiter.take({})
    assert (dict(taken.units), taken.wait, taken.unknown) == ({}, timedelta(), frozenset())


async def test_racing_callers_take_no_more_than_there_is(on: Scenario) -> None:
    """Twenty that ask at once for one unit each get ten."""
    limiter = await filled(on, api=RATE)
    answers = await asyncio.gather(*(limiter.take({"api": 1.0}) for _ in range(20)))

    assert sum(bool(taken.units) for taken in answers) == 10
