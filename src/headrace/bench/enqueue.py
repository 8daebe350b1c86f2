"""Enqueueing: in bulk, one by one, and by 64 callers at once. No worker runs; each call is timed until it is stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count

from headrace.bench.contenders.base import Contender, UnsupportedError
from headrace.bench.order import Order

CALLERS = 64
BULK_CALL = 10_000
#: Calls before the clock starts: statements are prepared, connections made, code warmed up.
WARM_UP = 20


async def enqueue(contender: Contender, order: Order) -> dict[str, float]:
    """Measure the three ways, each for about `order.seconds`, or `order.jobs` jobs in bulk."""
    figures = {"one": await _one_by_one(contender, order), "callers": await _by_callers(contender, order)}
    try:
        figures["many"] = await _in_bulk(contender, order)
    except UnsupportedError:
        return figures
    return figures


async def _in_bulk(contender: Contender, order: Order) -> float:
    await contender.enqueue_many("noop", list(range(100)))
    call = min(BULK_CALL, order.jobs)
    calls, begun = order.jobs // call, time.perf_counter()
    for number in range(calls):
        await contender.enqueue_many("noop", list(range(number * call, (number + 1) * call)))
    return calls * call / (time.perf_counter() - begun)


async def _one_by_one(contender: Contender, order: Order) -> float:
    return await rate(lambda number: contender.enqueue("noop", number), seconds=order.seconds, callers=1)


async def _by_callers(contender: Contender, order: Order) -> float:
    return await rate(lambda number: contender.enqueue("noop", number), seconds=order.seconds, callers=CALLERS)


async def rate(call: Callable[[int], Awaitable[object]], *, seconds: float, callers: int) -> float:
    """Return how many calls per second so many callers make, each awaiting its own, after a warm-up."""
    for number in range(WARM_UP):
        await call(number)
    numbers, begun = count(), time.perf_counter()
    done = 0

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() - begun < seconds:
            await call(next(numbers))
            done += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    return done / (time.perf_counter() - begun)
