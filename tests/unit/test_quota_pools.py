"""One pool and several processes, step by step on virtual time."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest

from headrace.llm.quota import QuotaWait, Reservation, gate_name
from headrace.llm.quota.central import Central
from headrace.llm.quota.slots import Slots
from headrace.model.learning import Learnt
from headrace.model.quota import Dimension, Estimate, Pool, PoolLimits, QuotaHint
from headrace.model.usage import Usage
from tests.unit.quota_world import Workload, World, in_world

SECOND = timedelta(seconds=1)
#: Ten calls a second, five of which the limiter keeps.
LIMITS = PoolLimits(requests_per_minute=600)
SMALL = Estimate(input_tokens=1, max_tokens=1)
USED = Usage(input_tokens=1, output_tokens=1, calls=1)


def on(
    scenario: Callable[[World], Awaitable[None]], limits: PoolLimits = LIMITS, *, processes: int = 2, ready: float = 5.0
) -> World:
    """Run a scenario without a provider; the buckets are declared, and full."""

    async def begin(world: World) -> None:
        for quotas in world.quotas:
            (await quotas.reserve(world.pool, SMALL)).settle(USED)
        await asyncio.sleep(ready)
        await asyncio.wait_for(scenario(world), 10_000)

    return in_world(begin, limits=limits, flows={}, processes=processes)


async def level(world: World, name: str = "requests") -> float:
    """Return how a bucket of the pool stands."""
    full = f"llm:{world.pool.name}:{name}"
    return float((await world.limiter.levels([full]))[full].units)


def test_what_is_leased_is_reserved_at_once() -> None:
    """While calls keep coming, the next is reserved without asking anybody; the first has to wait for a lease."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        assert quotas.try_reserve(world.pool, SMALL) is None
        at_once = 0
        for _ in range(200):
            reservation = quotas.try_reserve(world.pool, SMALL)
            at_once += reservation is not None
            (reservation or await quotas.reserve(world.pool, SMALL)).settle(USED)
            await asyncio.sleep(0.02)
        assert at_once > 150

    on(scenario, PoolLimits(requests_per_minute=6_000))


def test_calls_far_below_the_quota_seldom_wait() -> None:
    """They do not come evenly, so more is leased than is expected to be needed."""
    random, waits = Random(1), []

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        for number in range(2_000):
            reservation = quotas.try_reserve(world.pool, SMALL)
            if reservation is None and number > 100:
                waits.append(number)
            (reservation or await quotas.reserve(world.pool, SMALL)).settle(USED)
            await asyncio.sleep(random.expovariate(64))

    on(scenario, PoolLimits(requests_per_minute=600_000))
    assert len(waits) < 20


def test_nobody_is_overtaken() -> None:
    """A call that needs much is not starved by those that need little and came later."""

    async def scenario(world: World) -> None:
        order: list[str] = []

        async def ask(name: str, tokens: int) -> None:
            reservation = await world.quotas[0].reserve(world.pool, Estimate(tokens, 0))
            order.append(name)
            reservation.settle(Usage(input_tokens=tokens, calls=1))

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(ask("dear" if number == 10 else str(number), 45 if number == 10 else 10))
        assert order.index("dear") == 10

    on(scenario, PoolLimits(tokens_per_minute=6_000))


def test_a_dear_call_is_not_starved_by_other_processes() -> None:
    """A call for most of a second's quota passes soon, while two processes ask for all that flows; none is refused."""

    async def scenario(world: World) -> None:
        world.left = 100_000
        cheap = [asyncio.ensure_future(world._worker(world.quotas[number])) for number in (0, 1) for _ in range(40)]
        await asyncio.sleep(5)
        dear, waits = Workload(prompt=700, output=1, max_tokens=1), []
        for _ in range(5):
            began = world.loop.now
            reservation = await world.quotas[2].reserve(world.pool, Estimate(700, 1))
            waits.append(world.loop.now - began)
            usage, hint = await world.provider.call(Estimate(700, 1), 1, dear)
            reservation.settle(usage, hint)
        for worker in cheap:
            worker.cancel()
        assert max(waits) < 2
        assert world.provider.refused == []

    work = Workload(prompt=20, output=5, max_tokens=20)
    flows = {Dimension.TOKENS: 1_000.0, Dimension.REQUESTS: 1e6}
    in_world(scenario, limits=PoolLimits(tokens_per_minute=60_000), flows=flows, work=work)


def test_all_dimensions_or_none() -> None:
    """Who lacks tokens holds no requests either: what was leased of them goes back when he gives up."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        first = asyncio.ensure_future(quotas.reserve(world.pool, Estimate(400, 0)))
        await asyncio.sleep(0)
        with pytest.raises(QuotaWait):
            await quotas.reserve(world.pool, Estimate(40, 0), longest=2 * SECOND)
        (await first).refund()
        await asyncio.sleep(10)
        assert quotas.stats()[0].leased == {}
        assert (await level(world), await level(world, "tokens")) == pytest.approx((5.0, 50.0))

    on(scenario, PoolLimits(requests_per_minute=600, tokens_per_minute=6_000))


def test_who_is_first_with_a_dear_call_waits_until_it_is_earned() -> None:
    """Longer than it would otherwise: if all left that cannot wait so long, nobody would ever have it."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        began, dear = world.loop.now, Estimate(400, 0)
        first = asyncio.ensure_future(quotas.reserve(world.pool, dear, longest=2 * SECOND))
        await asyncio.sleep(1)
        told = []
        for _ in range(3):
            with pytest.raises(QuotaWait) as caught:
                await quotas.reserve(world.pool, dear, longest=2 * SECOND)
            told.append(caught.value.wait.total_seconds())
        assert told == sorted(told)
        (await first).settle(Usage(input_tokens=400, calls=1))
        assert world.loop.now - began == pytest.approx(4, abs=0.7)
        # The next comes as it was told, a little before the first leaves, and is served as soon as it can be.
        assert 1 < told[0] < 2.5
        with pytest.raises(QuotaWait) as caught:
            await quotas.reserve(world.pool, Estimate(100 * 301, 0), longest=2 * SECOND)
        assert "raise the limits of the pool, or ask for less at once" in caught.value.reason

    on(scenario, PoolLimits(tokens_per_minute=6_000))


def test_who_cannot_wait_is_told_at_once_how_long_it_takes() -> None:
    """Not after the wait: by what flows and who is before; and a shorter wait is waited for."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        before = [asyncio.ensure_future(quotas.reserve(world.pool, SMALL)) for _ in range(100)]
        await asyncio.sleep(0)
        began = world.loop.now
        with pytest.raises(QuotaWait) as told:
            await quotas.reserve(world.pool, SMALL, longest=5 * SECOND)
        assert world.loop.now == began
        assert 8 * SECOND < told.value.wait < 11 * SECOND
        assert told.value.pool == world.pool.name
        (await quotas.reserve(world.pool, SMALL, longest=12 * SECOND)).settle(USED)
        await asyncio.gather(*before)

    on(scenario)


def test_a_cancelled_caller_leaves_nothing_behind() -> None:
    """Neither a place in the line nor units, also when it was let pass just before it was cancelled."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        callers = [asyncio.ensure_future(quotas.reserve(world.pool, SMALL)) for _ in range(50)]
        await asyncio.sleep(0.3)
        for caller in callers:
            caller.cancel()
        ended = [one for one in await asyncio.gather(*callers, return_exceptions=True) if isinstance(one, Reservation)]
        for reservation in ended:
            reservation.refund()
        await asyncio.sleep(2)
        [stats] = quotas.stats()
        assert (stats.waiting, stats.in_flight, stats.leased) == (0, 0, {})
        assert await level(world) == pytest.approx(5.0)

    on(scenario)


async def sends(world: World, process: int, seconds: float, answer: Callable[[Reservation], None]) -> list[float]:
    """Reserve as often as is let, for some time, and return when."""
    at: list[float] = []
    until = world.loop.now + seconds
    while world.loop.now < until:
        try:
            reservation = await world.quotas[process].reserve(
                world.pool, SMALL, longest=timedelta(seconds=until - world.loop.now)
            )
        except QuotaWait:
            await asyncio.sleep(0.1)
            continue
        at.append(world.loop.now)
        answer(reservation)
    return at


def test_a_refusal_closes_the_pool_for_all_processes() -> None:
    """All stop within a quarter of a second; then one call goes ahead, and only when it is let through the others."""

    async def scenario(world: World) -> None:
        one, other = world.quotas
        reservation = await one.reserve(world.pool, SMALL)
        began = world.loop.now
        running = asyncio.ensure_future(sends(world, 1, 4.0, lambda sent: sent.settle(USED)))
        await asyncio.sleep(0.5)
        reservation.refuse(2 * SECOND)
        closed_at = world.loop.now
        assert one.closed_for(world.pool.name) == 2 * SECOND
        await asyncio.sleep(0.25)
        assert 1.7 < other.closed_for(world.pool.name).total_seconds() < 1.8
        assert (await world.limiter.levels([gate_name(world.pool.name)]))[gate_name(world.pool.name)].closed > SECOND
        at = await running
        assert any(instant < closed_at for instant in at)
        assert not [instant for instant in at if closed_at + 0.25 < instant < closed_at + 2]
        assert len([instant for instant in at if instant > closed_at + 2]) > 5
        assert began < closed_at

    on(scenario, PoolLimits(requests_per_minute=600))


def test_one_call_goes_ahead_after_a_closing() -> None:
    """Over all processes, until it was not refused for a while; one that is refused closes the pool for longer."""

    async def scenario(world: World) -> None:
        held: list[tuple[float, Reservation]] = []
        first = await world.quotas[0].reserve(world.pool, SMALL)
        first.refuse(SECOND)
        closed_at = world.loop.now
        await asyncio.sleep(0.05)
        tasks = [
            asyncio.ensure_future(
                sends(world, process, 6.0, lambda sent: held.append((world.loop.now, sent)))
            )
            for process in (0, 1, 2)
        ]  # fmt: skip
        while not held:
            await asyncio.sleep(0.01)
        assert 1.0 <= held[0][0] - closed_at < 1.3
        await asyncio.sleep(0.03)
        assert len(held) == 1
        held[0][1].refuse(SECOND / 10)
        again_at = world.loop.now
        while len(held) < 3:
            await asyncio.sleep(0.01)
        assert held[1][0] - again_at >= 1.5
        assert held[2][0] - held[1][0] >= 0.1
        for task in tasks:
            task.cancel()

    on(scenario, processes=3)


def test_many_refusals_at_once_are_one_closing() -> None:
    """Calls that were on their way when the pool closed lower the flow once, and close it no longer than they say."""

    async def scenario(world: World) -> None:
        reservations = [await quotas.reserve(world.pool, SMALL) for quotas in world.quotas for _ in range(2)]
        for reservation in reservations:
            reservation.refuse(SECOND)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.25)
        assert world.quotas[0].closed_for(world.pool.name) < SECOND
        await asyncio.sleep(2)
        for quotas in world.quotas:
            (await quotas.reserve(world.pool, SMALL)).settle(USED)
            await asyncio.sleep(0.5)
            assert quotas.stats()[0].learnt == pytest.approx(0.7)

    on(scenario)


def test_a_provider_that_is_busy_now_and_then_is_not_asked_less() -> None:
    """While less is sent than flows, a refusal of one call in forty is no reason to send less: the first alone lowers.

    One call in ten is: the limits may be wrong.
    """

    async def scenario(world: World) -> None:
        for calls, every, ends in ((400, 40, lambda learnt: learnt >= 0.7), (120, 10, lambda learnt: learnt < 0.4)):
            for number in range(calls):
                reservation = await world.quotas[0].reserve(world.pool, SMALL)
                if number % every == every - 1:
                    reservation.refuse(SECOND / 5)
                else:
                    reservation.settle(USED)
                await asyncio.sleep(1)
            learnt = world.quotas[0].stats()[0].learnt
            assert ends(learnt), learnt

    on(scenario)


def test_backoff_where_no_wait_is_told() -> None:
    """Half a second at first, with jitter, then twice as long each time, half a minute at most."""

    async def scenario(world: World) -> None:
        [quotas] = world.quotas
        waits = []
        for _ in range(9):
            (await quotas.reserve(world.pool, SMALL)).refuse(None)
            waits.append(quotas.closed_for(world.pool.name).total_seconds())
        assert 0.37 < waits[0] < 0.63
        assert all(later > 1.4 * sooner for sooner, later in pairwise(waits[:6]))
        assert max(waits) < 40

    on(scenario, processes=1)


def test_what_is_not_used_goes_back_soon_and_then_all_is_quiet() -> None:
    """A lease that nobody uses for a while is another process's; without calls nothing is asked of the limiter."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        for _ in range(3):
            (await quotas.reserve(world.pool, SMALL)).refund()
        assert quotas.stats()[0].leased["requests"] >= 1
        await asyncio.sleep(1)
        assert quotas.stats()[0].leased == {}
        before = sum(world.limiter.asked.values())
        await asyncio.sleep(3_600)
        assert sum(world.limiter.asked.values()) == before

    on(scenario)


def test_closing_gives_back() -> None:
    """What is leased goes back, what is owed is charged, and those who wait are cancelled."""

    async def scenario(world: World) -> None:
        one, other = world.quotas
        (await one.reserve(world.pool, SMALL)).refund()
        await one.close()
        assert await level(world) == pytest.approx(5.0)
        waiting = [asyncio.ensure_future(other.reserve(world.pool, SMALL)) for _ in range(50)]
        await asyncio.sleep(0.2)
        await other.close()
        assert any(task.cancelled() for task in waiting) or await asyncio.gather(*waiting, return_exceptions=True)
        assert all(task.done() for task in waiting)

    on(scenario)


def test_more_than_was_reserved_is_owed() -> None:
    """A call that used more than it reserved is charged for it, and the next one waits until that is paid."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        (await quotas.reserve(world.pool, Estimate(10, 0))).settle(Usage(input_tokens=210, calls=1))
        began = world.loop.now
        (await quotas.reserve(world.pool, Estimate(10, 0))).settle(Usage(input_tokens=10, calls=1))
        assert world.loop.now - began > 1.5
        (await quotas.reserve(world.pool, Estimate(10, 0))).settle(Usage(input_tokens=210, calls=1))
        await asyncio.sleep(0.5)
        assert await level(world, "tokens") < -50

    on(scenario, PoolLimits(tokens_per_minute=6_000))


def test_a_reservation_that_is_dropped_does_not_leak() -> None:
    """It counts as a call that used all it had reserved."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        reservation = await quotas.reserve(world.pool, SMALL)
        assert quotas.stats()[0].in_flight == 1
        del reservation
        gc.collect()
        await asyncio.sleep(0.01)
        assert quotas.stats()[0].in_flight == 0

    on(scenario, PoolLimits(requests_per_minute=600, concurrency=1))


def test_a_limiter_that_is_away_lets_nothing_pass(caplog: pytest.LogCaptureFixture) -> None:
    """It is said once, callers wait, and go on when it is there again."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        world.limiter.away = True
        with pytest.raises(QuotaWait):
            await quotas.reserve(world.pool, SMALL, longest=10 * SECOND)
        waiting = asyncio.ensure_future(quotas.reserve(world.pool, SMALL))
        await asyncio.sleep(10)
        assert not waiting.done()
        world.limiter.away = False
        (await waiting).settle(USED)

    with caplog.at_level(logging.INFO, "headrace.llm"):
        on(scenario)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_limiter_that_forgot_everything_is_told_again() -> None:
    """A server without persistence was started anew: the buckets are declared, and calls flow."""

    async def scenario(world: World) -> None:
        for name in ("requests", "doubt", "probe"):
            await world.limiter.forget(f"llm:{world.pool.name}:{name}")
        await world.limiter.forget(gate_name(world.pool.name))
        began = world.loop.now
        (await world.quotas[0].reserve(world.pool, SMALL)).settle(USED)
        assert world.loop.now - began < 0.5

    on(scenario)


def test_who_dies_while_it_writes_what_was_learnt_stops_nobody() -> None:
    """The number is declared and not written: what next to nothing has become since then is no flow."""

    async def scenario(world: World) -> None:
        before = world.limiter.asked["give_back"]
        writing = asyncio.create_task(Central(world.limiter, world.pool.name).write_learnt("pace", Learnt(20.0)))
        while world.limiter.asked["give_back"] == before:
            await asyncio.sleep(0.0005)
        writing.cancel()
        await asyncio.sleep(120)
        assert await level(world, "pace:flow") > 0
        async with asyncio.timeout(5):
            for _ in range(30):
                (await world.quotas[0].reserve(world.pool, SMALL)).settle(USED)

    in_world(scenario, limits=PoolLimits(), flows={})


def test_a_flow_that_was_never_refused_stays_so_however_long_it_lies() -> None:
    """Next to nothing flows into the number that says where the provider refused: it stays none."""

    async def scenario(world: World) -> None:
        central = Central(world.limiter, world.pool.name)
        await central.write_learnt("pace", Learnt(20.0))
        await asyncio.sleep(100_000)
        learnt = await central.read_learnt("pace")
        assert learnt is not None
        assert (round(learnt.flow, 6), learnt.refused) == (20.0, None)

    in_world(scenario, limits=PoolLimits(), flows={})


@pytest.mark.parametrize("processes", [1, 5])
def test_no_more_than_the_burst_passes_at_once(processes: int) -> None:
    """After any pause, over all processes together: in t seconds at most the burst and what flows in t."""

    async def scenario(world: World) -> None:
        at: list[float] = []

        async def caller(process: int) -> None:
            for _ in range(200 // processes):
                (await world.quotas[process].reserve(world.pool, SMALL)).settle(USED)
                at.append(world.loop.now)

        for _ in range(2):
            await asyncio.gather(*(caller(process) for process in range(processes)))
            await asyncio.sleep(30)
        for first in range(len(at)):
            for last in range(first, len(at)):
                assert last - first + 1 <= 10 + 10 * (at[last] - at[first]) + 1e-6

    on(scenario, processes=processes)


@pytest.mark.parametrize("limit", [7, 100])
def test_concurrency_holds_over_all_processes(limit: int) -> None:
    """At most so many calls are in flight, all slots are used, and every process has its turn."""

    async def scenario(world: World) -> None:
        flying = most = 0
        done = [0, 0, 0]

        async def caller(process: int) -> None:
            nonlocal flying, most
            while world.loop.now < 60:
                reservation = await world.quotas[process].reserve(world.pool, SMALL)
                flying += 1
                most = max(most, flying)
                await asyncio.sleep(0.5)
                flying -= 1
                reservation.settle(USED)
                done[process] += 1

        await asyncio.gather(*(caller(process) for process in (0, 1, 2) for _ in range(limit)))
        assert most == limit
        assert sum(done) > 0.8 * limit * 2 * (60 - 5)
        assert min(done) > 0.2 * sum(done)

    on(scenario, PoolLimits(requests_per_minute=600_000, concurrency=limit), processes=3)


def test_slots_of_a_dead_process_are_free_after_a_while() -> None:
    """Nobody gives them back, and for half a minute nobody gets them; those of the living stay theirs."""

    async def scenario(world: World) -> None:
        dead, living = world.quotas
        held = [await dead.reserve(world.pool, SMALL) for _ in range(2)]
        kept = await living.reserve(world.pool, SMALL)
        dead._pools[world.pool.name]._pump._task.cancel()  # type: ignore[union-attr]
        with pytest.raises(QuotaWait):
            await living.reserve(world.pool, SMALL, longest=20 * SECOND)
        later = [await living.reserve(world.pool, SMALL, longest=20 * SECOND) for _ in range(2)]
        with pytest.raises(QuotaWait):
            await living.reserve(world.pool, SMALL, longest=60 * SECOND)
        for reservation in (*later, kept, *held):
            reservation.settle(USED)

    on(scenario, PoolLimits(requests_per_minute=60_000, concurrency=3))


def test_remaining_lowers_what_is_leased() -> None:
    """A provider that says it has less than we think is believed; one that says it has more is not."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        reservations = [await quotas.reserve(world.pool, SMALL) for _ in range(3)]
        for reservation in reservations[:2]:
            reservation.refund()
        leased = quotas.stats()[0].leased["requests"]
        reservations[2].settle(USED, QuotaHint(remaining={Dimension.REQUESTS: 1e6}))
        assert quotas.stats()[0].leased["requests"] >= leased
        last = await quotas.reserve(world.pool, SMALL)
        last.settle(USED, QuotaHint(remaining={Dimension.REQUESTS: 0.0}))
        assert quotas.stats()[0].leased.get("requests", 0.0) < 0.1

    on(scenario)


def test_other_limits_hold_from_now_on() -> None:
    """A pool that is used with other limits than before flows by the new ones, for those too who wait."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        waiting = [asyncio.ensure_future(quotas.reserve(world.pool, SMALL)) for _ in range(60)]
        await asyncio.sleep(1)
        faster = Pool(world.pool.name, PoolLimits(requests_per_minute=6_000, concurrency=1_000))
        (await quotas.reserve(faster, SMALL)).settle(USED)
        began = world.loop.now
        await asyncio.gather(*waiting)
        assert world.loop.now - began < 2
        assert quotas.stats()[0].flows == {"requests": 100.0}

    on(scenario)


def test_what_was_paid_for_a_caller_that_left_is_there_for_the_next() -> None:
    """A dear call that is cancelled leaves no debt: a cheap one behind it passes soon."""

    async def scenario(world: World) -> None:
        [quotas, other] = world.quotas
        dear = asyncio.ensure_future(quotas.reserve(world.pool, Estimate(4_000, 0)))
        await asyncio.sleep(1)
        dear.cancel()
        await asyncio.wait([dear])
        for one in (quotas, other):
            began = world.loop.now
            (await one.reserve(world.pool, Estimate(40, 0))).refund()
            assert world.loop.now - began < 2

    on(scenario, PoolLimits(tokens_per_minute=6_000))


def test_jobs_that_wait_leave_when_their_worker_ends() -> None:
    """Also the first in line; who waits without a limit stays."""

    async def scenario(world: World) -> None:
        [quotas, _] = world.quotas
        dear = Estimate(400, 0)
        first = asyncio.ensure_future(quotas.reserve(world.pool, dear, longest=2 * SECOND))
        await asyncio.sleep(0.1)
        plain = asyncio.ensure_future(quotas.reserve(world.pool, dear))
        await asyncio.sleep(0.1)
        began = world.loop.now
        with quotas.jobs_leave():
            with pytest.raises(QuotaWait):
                await first
            with pytest.raises(QuotaWait):
                await quotas.reserve(world.pool, dear, longest=2 * SECOND)
            assert world.loop.now == began
        (await plain).refund()
        (await quotas.reserve(world.pool, dear, longest=10 * SECOND)).refund()

    on(scenario, PoolLimits(tokens_per_minute=6_000))


def test_rent_that_is_due_is_taken() -> None:
    """At the very instant at which it is due, however sums of floats are rounded: else it is looked at without end."""
    random = Random(1)
    for _ in range(10_000):
        slots, leased_at = Slots(1, random), random.uniform(0, 1_000)
        slots.lease(dict.fromkeys(slots.rates, 1.0), leased_at)
        rest = slots.renews_in(leased_at)
        assert rest is not None
        due_at = leased_at + rest
        while slots.renews_in(due_at):
            due_at = math.nextafter(due_at, math.inf)
        assert slots.rent(due_at)
