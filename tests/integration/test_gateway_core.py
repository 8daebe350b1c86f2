"""One call through the gateway where something fails at one place: each on virtual time, so that waits cost nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from headrace.llm.coalescing import Coalescer
from headrace.model.calls import CallState, Origin, current_origin
from headrace.model.errors import ConfigError, StoreUnavailableError
from headrace.model.llm import TextPart
from headrace.model.parking import ParkRequested
from headrace.model.quota import PoolLimits
from tests.integration.gateway_world import World, in_world, request_of

Scenario = Callable[[World], Awaitable[None]]


def run(scenario: Scenario, **provider: Any) -> World:
    """Run a scenario with one process."""
    return in_world(scenario, seed=1, processes=1, seconds=(1.0, 1.0), **provider)


async def until(condition: Callable[[], bool]) -> None:
    """Let virtual time pass until something holds."""
    while not condition():
        await asyncio.sleep(0.001)


def test_who_asks_while_an_equal_ask_is_being_given_up_gets_an_answer() -> None:
    """The asker before was cancelled; the one after it is not cancelled with it."""

    async def scenario(world: World) -> None:
        llm = world.callers[0].llm
        for steps in range(1, 200):
            text = f"word {steps}"
            first = asyncio.create_task(llm.complete(text, max_tokens=20))
            await asyncio.sleep(steps / 10_000)
            first.cancel()
            await asyncio.wait([first])
            assert await asyncio.create_task(llm.complete(text, max_tokens=20)) == text.upper()

    run(scenario)


def test_a_refused_call_that_nobody_wants_any_more_is_not_made_again() -> None:
    """Its asker went while it was under way; the 429 that comes then ends it."""

    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.callers[0].llm.complete("word", max_tokens=20))
        await until(lambda: world.provider.calls > 0)
        asking.cancel()
        await asyncio.sleep(60)
        assert world.provider.calls == 1
        assert [call.state for call in await world.calls()] == [CallState.SETTLED]

    run(scenario, refuses=1.0)


def test_an_app_that_closes_says_so_to_those_who_wait() -> None:
    """They were not cancelled, so they get an error; and nothing is asked of a closed gateway."""

    async def scenario(world: World) -> None:
        [caller] = world.callers
        world.limiter_way.away = True
        asking = asyncio.create_task(caller.llm.complete("word", max_tokens=20))
        await asyncio.sleep(1)
        await caller.close()
        with pytest.raises(ConfigError, match="the app was closed"):
            await asking
        with pytest.raises(ConfigError, match="the app was closed"):
            await caller.llm.complete("word", max_tokens=20)
        assert await world.calls() == []

    run(scenario)


def test_who_waits_while_the_app_closes_begins_no_call() -> None:
    """Its flight ended with that of a handler that was parked; the next one would outlive the session."""

    async def scenario(world: World) -> None:
        world.limits = PoolLimits(requests_per_minute=20)
        caller = world.start()
        await caller.llm.complete("first", max_tokens=20)

        async def in_handler() -> str:
            current_origin.set(Origin(job_id=uuid4()))
            return await caller.llm.complete("word", max_tokens=20)

        ahead = asyncio.create_task(caller.llm.complete("ahead", max_tokens=20))
        await asyncio.sleep(0.1)
        parked = asyncio.create_task(in_handler())
        await asyncio.sleep(0)
        waiting = asyncio.create_task(caller.llm.complete("word", max_tokens=20))
        with pytest.raises(ParkRequested):
            await parked
        await caller.close()
        with pytest.raises(ConfigError, match="the app was closed"):
            await waiting
        await asyncio.wait([ahead])
        assert world.provider.asked["word"] == 0

    run(scenario)


@pytest.mark.parametrize("seconds", [20, 100])
def test_a_paid_answer_outlives_an_outage_of_the_store(seconds: int) -> None:
    """It comes while the store is away: it is stored when that is back, and asking again costs nothing."""

    async def scenario(world: World) -> None:
        llm = world.callers[0].llm
        asking = asyncio.create_task(llm.complete("word", max_tokens=20))
        await until(lambda: world.provider.asked.total() > 0)
        world.store_way.away = True
        world.loop.call_later(seconds, world.heal)
        if seconds > 30:
            with pytest.raises(StoreUnavailableError, match="stored as soon as the store is there"):
                await asking
            await until(lambda: not world.store_way.away)
            asking = asyncio.create_task(llm.complete("word", max_tokens=20))
        assert await asking == "WORD"
        assert world.provider.asked.total() == 1

    run(scenario)


def test_closing_while_the_store_is_away_ends(caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be stored is given up after some seconds, and said."""

    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.callers[0].llm.complete("word", max_tokens=20))
        await until(lambda: world.provider.asked.total() > 0)
        world.store_way.away = True
        await asyncio.sleep(2)
        async with asyncio.timeout(30):
            await world.callers[0].close()
        assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], ConfigError)

    run(scenario)
    assert any("could not be stored" in record.message for record in caplog.records)


def test_lost_answers_of_the_store_leave_no_key_held() -> None:
    """A call is recorded, but three times nobody hears that: later it can be asked all the same."""

    async def scenario(world: World) -> None:
        llm = world.callers[0].llm
        await llm.complete("first", max_tokens=20)
        world.store_way.loses = 1.0
        with pytest.raises(StoreUnavailableError):
            await llm.complete("word", max_tokens=20)
        world.heal()
        async with asyncio.timeout(20):
            assert await llm.complete("word", max_tokens=20) == "WORD"

    run(scenario)


def test_a_cancelled_look_at_a_spool_leaves_no_key_held() -> None:
    """Parts of an answer are stored; whoever is cancelled while they are fetched holds nothing afterwards."""

    async def scenario(world: World) -> None:
        text = "a rather long word"
        dead = world.start()
        world.run_as(dead, world.ask(dead, text, streamed=True, in_handler=False))
        await asyncio.sleep(1.5)
        world.loop.kill(dead.actor)
        await asyncio.sleep(40)
        for steps in range(1, 60):
            asking = asyncio.create_task(first_part(world, text))
            await asyncio.sleep(steps / 4_000)
            asking.cancel()
            await asyncio.wait([asking])
        async with asyncio.timeout(5):
            assert await first_part(world, text) != ""
        await asyncio.sleep(1)
        await world.callers[0].close()
        await world.check_rest()

    run(scenario)


async def first_part(world: World, text: str) -> str:
    """The first part of a streamed answer."""
    async for part in world.callers[0].llm._exchange().stream(request_of(text)):
        if isinstance(part, TextPart):
            return part.text
    return ""


def test_a_limiter_that_is_away_does_not_fail_a_call_that_has_to_wait() -> None:
    """That jobs of the pool need not start is told at best effort."""

    async def scenario(world: World) -> None:
        world.limits = PoolLimits(requests_per_minute=0.1)
        caller = world.start()
        current_origin.set(Origin(job_id=uuid4()))

        async def away(pool: str, wait: timedelta) -> None:
            raise StoreUnavailableError

        object.__setattr__(caller.llm._models.means, "hold_jobs", away)
        with pytest.raises(ParkRequested):
            await caller.llm.complete("word", max_tokens=20)

    run(scenario)


def test_a_job_looks_again_though_its_quota_is_far_away() -> None:
    """A limit may be raised meanwhile: nobody is parked for longer than five minutes."""

    async def scenario(world: World) -> None:
        world.limits = PoolLimits(requests_per_minute=0.001)
        current_origin.set(Origin(job_id=uuid4()))
        with pytest.raises(ParkRequested) as caught:
            await world.start().llm.complete("word", max_tokens=20)
        assert caught.value.wait == timedelta(minutes=5)

    run(scenario)


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (PoolLimits(requests_per_minute=20), 3.0),
        (PoolLimits(requests_per_minute=2), 30.0),
        (PoolLimits(tokens_per_minute=600), 1.5),
    ],
    ids=["20 requests", "2 requests", "tokens"],
)
@pytest.mark.parametrize("processes", [1, 3])
def test_jobs_are_served_by_a_quota_of_which_a_call_takes_more_than_they_wait(
    limits: PoolLimits, seconds: float, processes: int
) -> None:
    """Each of them comes when its call may be made, though nobody waits in a slot for as long as that takes."""
    jobs = 12

    async def scenario(world: World) -> None:
        async with asyncio.timeout(1.6 * jobs * seconds + 60):
            await asyncio.gather(*(world.work(f"word {number}") for number in range(jobs)))
        assert world.loop.now >= 0.9 * (jobs - 1) * seconds
        for caller in world.callers:
            await caller.close()
        await world.check_rest()

    world = in_world(scenario, seed=1, processes=processes, limits=limits)
    assert (world.provider.answered.total(), world.provider.calls) == (jobs, jobs)


async def test_an_outage_fails_all_items_of_a_statement_at_once() -> None:
    """Sent one by one, each would wait for the store as long as the first did."""
    statements: list[list[int]] = []

    async def send(items: list[int]) -> list[int]:
        statements.append(items)
        await asyncio.sleep(0)
        raise StoreUnavailableError

    coalescer: Coalescer[int, int] = Coalescer(send)
    answers = await asyncio.gather(*(coalescer.put(number) for number in range(50)), return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailableError) for answer in answers)
    assert len(statements) == 1


def test_calls_that_waited_for_a_quota_are_sent_in_shared_statements() -> None:
    """Thirty calls let pass together are not thirty statements."""

    async def scenario(world: World) -> None:
        llm, calls = world.callers[0].llm, 30
        await asyncio.gather(*(llm.complete(f"word {number}", max_tokens=20) for number in range(calls)))
        assert world.store_way.asked["send_calls"] < calls / 2

    world = in_world(scenario, seed=1, processes=1, limits=PoolLimits(requests_per_minute=60_000))
    assert world.provider.answered.total() == 30
