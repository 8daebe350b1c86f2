"""Buckets of a server whose clock is set: forward by mistake, and back."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator

import pytest

from headrace.model.limits import Declared, Gate, Rate
from headrace.testing.clock import FakeClock
from tests.conformance.scenario import MINUTE, SECOND, Scenario

HOUR = 60 * MINUTE


@pytest.fixture(params=["memory", "postgres", "redis"])
async def on(request: pytest.FixtureRequest) -> AsyncIterator[Scenario]:
    """Stores with a bucket of ten units a second that were all used while the clock was an hour ahead."""
    clock = FakeClock()
    async with importlib.import_module(f"tests.backends.{request.param}").open_test_stores(clock) as stores:
        on = Scenario(stores, clock)
        await on.gate.declare_limits(Declared(rates={"api": Rate(10.0, 10.0)}))
        clock.advance(HOUR)
        assert (await on.limiter.take({"api": 10.0})).units == {"api": 10.0}
        clock.set_now(clock.now() - HOUR)
        yield on


async def test_jobs_start_when_they_were_said_to(on: Scenario) -> None:
    """The bucket stands at now: it fills from the first look on, not when the clock has come up to where it was."""
    session = await on.worker()
    await on.enqueue(5, gate=Gate(limits=(("api", 1.0),)))
    answer = await on.look(session)
    assert (answer.jobs, answer.look_in) == ([], SECOND / 10)

    on.clock.advance(answer.look_in)
    assert len((await on.look(session)).jobs) == 1


@pytest.mark.parametrize("some", [True, False])
async def test_calls_have_their_units_when_they_were_said_to(on: Scenario, some: bool) -> None:
    """The same for units that are taken without a job: who is refused may ask again after the wait."""
    wait = (await on.limiter.take({"api": 1.0}, some=some)).wait
    assert wait == SECOND / 10

    on.clock.advance(wait)
    assert (await on.limiter.take({"api": 1.0}, some=some)).units == {"api": pytest.approx(1.0)}


async def test_no_unit_is_given_twice(on: Scenario) -> None:
    """Units come by the time that passed since the first look, however far the clock had been ahead."""
    await on.limiter.take({"api": 1.0})
    on.clock.advance(SECOND / 2)
    assert (await on.limiter.take({"api": 10.0}, some=True)).units == {"api": pytest.approx(5.0)}
    await on.limiter.give_back({"api": 2.0})
    assert (await on.limiter.take({"api": 10.0}, some=True)).units == {"api": pytest.approx(2.0)}
