"""Client processes on one key, on virtual time: quotas are used, not exceeded, and found where nobody knows them."""

from __future__ import annotations

from statistics import fmean

import pytest

from headrace.model.fairness import jain_index
from headrace.model.quota import ChargePolicy, Dimension, PoolLimits
from tests.unit.quota_world import World, in_world

REQUESTS = {Dimension.REQUESTS: 100.0}
TOKENS = {Dimension.REQUESTS: 1_000.0, Dimension.TOKENS: 68_000.0}
LIMITS = {
    Dimension.REQUESTS: PoolLimits(requests_per_minute=6_000),
    Dimension.TOKENS: PoolLimits(requests_per_minute=60_000, tokens_per_minute=68_000 * 60),
}
FLOWS = {Dimension.REQUESTS: REQUESTS, Dimension.TOKENS: TOKENS}
#: When the quota is halved, and how long the provider's own burst of a second then lasts at most.
HALVED_AT, LASTS = 10.0, 2.0


def refused_share(world: World) -> float:
    """Return the part of all sends that was refused."""
    provider = world.provider
    return len(provider.refused) / (len(provider.refused) + len(provider.accepted))


@pytest.mark.parametrize("burst", [1.0, 10.0])
@pytest.mark.parametrize("binding", [Dimension.REQUESTS, Dimension.TOKENS])
def test_known_limits_are_used_and_never_exceeded(binding: Dimension, burst: float) -> None:
    """At least 95 % of the quota that binds is used, without one refusal, from the first second on."""

    async def scenario(world: World) -> None:
        await world.run(2_000)

    world = in_world(scenario, limits=LIMITS[binding], flows=FLOWS[binding], burst_seconds=burst)
    assert world.provider.refused == []
    assert world.provider.used(binding, 4, world.loop.now - 3) >= 0.95 * FLOWS[binding][binding]
    assert jain_index(list(world.answered.values())) > 0.98
    assert world.limiter.asked["take"] < 25 * 3 * world.loop.now


def test_answers_that_are_charged_as_they_are_written() -> None:
    """A small quota is used from soon on: not the most that an answer may have is held for it, but what is usual."""

    async def scenario(world: World) -> None:
        await world.run(300)

    flows = {Dimension.REQUESTS: 1_000.0, Dimension.TOKENS: 3_400.0}
    limits = PoolLimits(tokens_per_minute=3_400 * 60, charge=ChargePolicy.ACTUAL)
    world = in_world(scenario, limits=limits, flows=flows, reserves_answers=False)
    assert world.provider.refused == []
    assert world.provider.used(Dimension.TOKENS, 10, world.loop.now - 10) >= 0.95 * 3_400


@pytest.mark.parametrize("processes", [1, 8])
def test_the_number_of_processes_does_not_matter(processes: int) -> None:
    """One process uses all of the quota, and eight do not exceed it, though answers take unevenly long to travel."""

    async def scenario(world: World) -> None:
        await world.run(1_500)

    world = in_world(
        scenario, limits=LIMITS[Dimension.REQUESTS], flows=REQUESTS, processes=processes, network=(0.005, 0.15)
    )
    assert world.provider.refused == []
    assert world.provider.used(Dimension.REQUESTS, 4, world.loop.now - 3) >= 95


@pytest.mark.parametrize("whole_seconds", [True, False, None])
def test_a_quota_that_nobody_knows_is_found(whole_seconds: bool | None) -> None:
    """Few calls are refused, and five seconds after the first of them at least 95 % is used."""

    async def scenario(world: World) -> None:
        await world.run(3_000)

    world = in_world(scenario, limits=PoolLimits(), flows=REQUESTS, whole_seconds=whole_seconds)
    first = world.provider.refused[0]
    assert refused_share(world) <= 0.02
    assert world.provider.used(Dimension.REQUESTS, first + 5, world.loop.now - 3) >= 95


@pytest.mark.parametrize("binding", [Dimension.REQUESTS, Dimension.TOKENS])
def test_a_quota_that_is_halved_is_found_again(binding: Dimension) -> None:
    """Few calls are refused, and five seconds after the first of them nearly all that is left is used.

    In the mean of some worlds: one more refusal in the time that is looked at costs a tenth of it, as the provider
    tells whole seconds.
    """

    async def scenario(world: World) -> None:
        world.loop.call_at_world_time(HALVED_AT, world.provider.scale, 0.5)
        await world.run(2_200)

    used = []
    for seed in range(4):
        world = in_world(scenario, limits=LIMITS[binding], flows=FLOWS[binding], seed=seed)
        first = world.provider.refused[0]
        assert HALVED_AT < first < HALVED_AT + LASTS
        assert refused_share(world) <= 0.02
        used.append(world.provider.used(binding, first + 5, first + 17))
    assert fmean(used) >= 0.9 * FLOWS[binding][binding] / 2


def test_told_limits_are_heeded_before_anything_is_refused() -> None:
    """Headers that tell of a halved quota lower the flow; limits that are told where none are known hold."""

    async def halved(world: World) -> None:
        world.loop.call_at_world_time(HALVED_AT, world.provider.scale, 0.5)
        await world.run(1_500)

    async def unknown(world: World) -> None:
        await world.run(1_500)

    world = in_world(halved, limits=LIMITS[Dimension.REQUESTS], flows=REQUESTS, tells_limits=True)
    assert world.provider.refused == []
    assert 47 < world.provider.used(Dimension.REQUESTS, HALVED_AT + 2, world.loop.now - 3) <= 52

    world = in_world(unknown, limits=PoolLimits(), flows=REQUESTS, tells_limits=True)
    assert world.provider.refused == []
    assert world.provider.used(Dimension.REQUESTS, 3, world.loop.now - 3) >= 95
