"""The loop on virtual time: what it uses of asyncio, and what it does to actors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from random import Random
from typing import Any

import pytest

from headrace.testing.simulation.loop import WORLD, Actor, VirtualLoop


def play(
    chance: Random | None, *works: tuple[Actor, Callable[[], Coroutine[Any, Any, None]]], until: float
) -> VirtualLoop:
    """Run coroutines as actors until a virtual time."""
    loop = VirtualLoop(chance)
    for actor, work in works:
        loop.create_task(work(), context=actor.context())
    loop.call_at_world_time(until, loop.stop, context=WORLD.context())
    loop.run_forever()
    loop.dispose([WORLD, *(actor for actor, _ in works)])
    return loop


def test_the_private_names_of_asyncio_are_there() -> None:
    """What the loop uses of asyncio beyond its documentation exists in this Python."""
    loop = VirtualLoop(None)
    context = copy_context()
    handle = loop.call_soon(print, context=context)
    timer = loop.call_later(1, print)

    async def nothing() -> None: ...

    task = loop.create_task(nothing())
    assert handle._context is context  # type: ignore[attr-defined]
    assert handle._cancelled is timer._cancelled is False
    assert callable(handle._run)
    assert task._log_destroy_pending is False  # type: ignore[attr-defined]
    assert callable(asyncio.BaseEventLoop._run_once)  # type: ignore[attr-defined]
    assert loop._stopping is False  # type: ignore[attr-defined]
    WORLD.tasks.remove(task)
    task.get_coro().close()
    loop.close()


def test_time_jumps_to_the_next_timer() -> None:
    """An hour of sleep takes no time."""
    woken: list[float] = []

    async def sleeper() -> None:
        await asyncio.sleep(3_600)
        woken.append(asyncio.get_running_loop().time())

    play(None, (Actor("a"), sleeper), until=4_000)
    assert woken == [3_600]


def test_a_seed_orders_what_is_ready() -> None:
    """Without chance callbacks run first come first served; with it the seed decides, and always alike."""

    def order(chance: Random | None) -> list[int]:
        seen: list[int] = []

        async def many() -> None:
            for number in range(20):
                asyncio.get_running_loop().call_soon(seen.append, number)
            await asyncio.sleep(1)

        play(chance, (Actor("a"), many), until=2)
        return seen

    assert order(None) == list(range(20))
    assert order(Random(1)) == order(Random(1)) != list(range(20))
    assert sorted(order(Random(1))) == list(range(20))


def test_a_frozen_actor_does_nothing_until_it_thaws() -> None:
    """Its timers fire late, all of them; its clock went on; others are not held up."""
    seen: list[tuple[str, float]] = []
    frozen, other = Actor("frozen"), Actor("other")

    def ticker(name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def tick() -> None:
            for _ in range(3):
                await asyncio.sleep(1)
                seen.append((name, asyncio.get_running_loop().time()))

        return tick

    async def freezer() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await asyncio.sleep(0.5)
        loop.freeze(frozen)
        await asyncio.sleep(5)
        loop.thaw(frozen)

    play(None, (frozen, ticker("frozen")), (other, ticker("other")), (WORLD, freezer), until=20)
    assert seen == [("other", 1), ("other", 2), ("other", 3), ("frozen", 5.5), ("frozen", 6.5), ("frozen", 7.5)]


def test_a_dead_actor_cleans_nothing_up() -> None:
    """Nothing of it runs after its death, no `finally` either, until the world is disposed of."""
    seen: list[str] = []
    doomed = Actor("doomed")

    async def work() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            seen.append("cleanup")

    async def killer() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await asyncio.sleep(1)
        loop.kill(doomed)
        await asyncio.sleep(100)
        seen.append("end")

    play(None, (doomed, work), (WORLD, killer), until=200)
    assert seen == ["end", "cleanup"]


@pytest.mark.parametrize(("rate", "offset"), [(0.5, 0.0), (2.0, 1_000.0)])
def test_clocks_of_actors_drift(rate: float, offset: float) -> None:
    """An actor's timers and its clock run at its own rate from its own beginning."""
    seen: list[tuple[float, float]] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        begun = loop.time()
        async with asyncio.timeout(30):
            await asyncio.sleep(10)
        seen.append((loop.time() - begun, loop.now))

    play(None, (Actor("a", rate=rate, offset=offset), work), until=100)
    assert seen == [(10, 10 / rate)]


def test_threads_are_refused() -> None:
    """A thread knows no virtual time: whoever asks for one is told."""
    loop = VirtualLoop(None)
    with pytest.raises(RuntimeError, match="threads know no virtual time"):
        loop.run_in_executor(None, print)
    loop.close()
