"""The gateway under random failures: what was paid is kept, and nothing is held by a call that nobody makes."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.gateway_world import WORDS, World, in_world

SEEDS = range(12)


async def trouble(world: World, *, kills: int, closes: int, outages: int) -> None:
    """Ask for a dozen words from everywhere, while this and that happens."""
    loop, random, asking = world.loop, world.random, []
    for number in range(60):
        caller = random.choice(world.living)
        work = world.ask(
            caller, f"word {number % WORDS}", streamed=random.random() < 0.3, in_handler=random.random() < 0.4
        )
        task = world.run_as(caller, work)
        asking.append((caller, task))
        if random.random() < 0.4:
            loop.call_later(random.expovariate(1.0), task.cancel)
        await asyncio.sleep(random.choice([0.0, 0.0, 0.001, 0.1]))
        if number % 20 == 10:
            await something_happens(world, kills, closes, outages)
    await asyncio.sleep(2)
    world.heal()
    for caller, task in asking:
        if not caller.actor.dead:
            await ended(world, task)
    for caller in world.living:
        await caller.close()
    # Longer than the lease of a session.
    await asyncio.sleep(40)
    await world.check_rest()


async def ended(world: World, task: asyncio.Task[None]) -> None:
    """Wait for an asker; one that nobody cancelled must not end as if it was."""
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        assert task.cancelling(), "nobody cancelled it"
        world.outcomes["cancelled"] += 1


async def something_happens(world: World, kills: int, closes: int, outages: int) -> None:
    """A process dies or closes, or a server is away."""
    random, loop = world.random, world.loop
    if kills:
        loop.kill(random.choice(world.living).actor)
        world.start()
    if closes:
        caller = random.choice(world.living)
        world.start()
        await world.run_as(caller, caller.close())
    for way in (world.store_way, world.limiter_way)[:outages]:
        way.away = True
        loop.call_later(random.uniform(0.1, 20), setattr, way, "away", False)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("kills", "closes", "outages", "lost"),
    [(0, 0, 0, 0.0), (0, 0, 2, 0.0), (0, 0, 0, 0.2), (0, 1, 0, 0.05), (1, 0, 2, 0.1)],
    ids=["cancelled", "outages", "lost answers", "closing", "all of it"],
)
def test_nothing_is_lost_and_nothing_stays_held(seed: int, kills: int, closes: int, outages: int, lost: float) -> None:
    """Askers are cancelled, servers fall away, processes close and die: at rest the books are right."""

    async def scenario(world: World) -> None:
        world.store_way.fails = world.store_way.loses = lost
        await trouble(world, kills=kills, closes=closes, outages=outages)

    world = in_world(scenario, seed=seed, refuses=0.05, overloads=0.03, times_out=0.03)
    print(world.outcomes, world.provider.asked, world.provider.answered)
    assert world.wrong == []
    assert set(world.outcomes) <= {"answered", "cancelled", "closed"}
