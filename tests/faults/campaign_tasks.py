"""The apps of a campaign. Every attempt reports its start and its end to the effect log and waits for the receipts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from headrace import App, Backoff, Breaker, Context, Limit
from tests.faults.effects import PORT, EffectClient

app = App()
#: Its workers go through gates, which is another statement; those of `app` claim without.
capped_app = App()
#: How many jobs of `guarded` may run at once.
ROOM = 6
capped_app.queue("guarded", concurrency=ROOM, rate_limit="300/s", burst=30)
#: Queues without a gate until an operator caps them while their jobs run.
FRESH = 8

_links: dict[int, EffectClient] = {}


def effects() -> EffectClient:
    """Return the links of this process to the effect log."""
    if os.getpid() not in _links:
        _links[os.getpid()] = EffectClient(int(os.environ[PORT]))
    return _links[os.getpid()]


@asynccontextmanager
async def attempt(ctx: Context, number: int, **room: int) -> AsyncIterator[None]:
    """Report one attempt: `start`, then `end` or, when it was stopped or failed, `stopped`.

    `room`: how many may run at once with it, by what they have in common.
    """
    steps: Any = ctx.steps
    facts = {"job": str(ctx.job_id), "attempt": ctx.attempt, "session": str(steps.session), "task": ctx.task}
    try:
        await effects().note("start", number=number, room=room, **facts)
        yield
    except BaseException:
        await effects().note("stopped", number=number, **facts)
        raise
    await effects().note("end", number=number, **facts)


@app.task
async def mark(ctx: Context, number: int, pause: float = 0.0) -> list[int]:
    """Leave a mark, after a while."""
    async with attempt(ctx, number):
        await asyncio.sleep(pause)
    return [number, ctx.attempt]


@app.task(retry=Backoff.fixed("20ms", max_attempts=3))
async def flaky(ctx: Context, number: int) -> list[int]:
    """Fail until a step of an earlier attempt is there; each step has a value that no other run would give."""
    async with attempt(ctx, number):
        values = [await ctx.step(name, lambda: f"{os.getpid()}-{os.urandom(8).hex()}") for name in ("first", "second")]
        await effects().note("step", job=str(ctx.job_id), attempt=ctx.attempt, values=values)
        if ctx.attempt == 1:
            raise RuntimeError("the first attempt fails")
        ctx.log.info("again")
    return [number, ctx.attempt]


@app.task(queue="broken", retry=Backoff.fixed(0, max_attempts=1))
async def broken(ctx: Context, number: int, pause: float = 0.0, fails: bool = True) -> list[int]:
    """Fail for good, unless told not to."""
    async with attempt(ctx, number):
        await asyncio.sleep(pause)
        if fails:
            raise ValueError("it always fails")
    return [number, ctx.attempt]


@app.task(queue="letters", retry=Backoff.fixed(0, max_attempts=1))
async def letter(ctx: Context, number: int, fails: bool = True) -> list[int]:
    """Become a dead letter, unless told not to, in a queue whose letters are run again at random."""
    async with attempt(ctx, number):
        if fails:
            raise ValueError("it always fails")
    return [number, ctx.attempt]


@app.task
async def closed(ctx: Context, batch_id: str) -> list[int]:
    """Be the callback of a batch."""
    async with attempt(ctx, 0):
        await effects().note("closed", batch=batch_id)
    return [0, ctx.attempt]


@app.task
async def tick(ctx: Context, schedule: str) -> list[int]:
    """Be the job of a schedule."""
    async with attempt(ctx, 0):
        pass
    return [0, ctx.attempt]


@app.task(queue="nobody")
async def never(number: int) -> None:
    """Wait in a queue that no worker serves."""


@capped_app.task(queue="capped", concurrency=3)
async def capped(ctx: Context, number: int) -> list[int]:
    """Leave a mark, three at a time."""
    async with attempt(ctx, number, capped=3):
        await asyncio.sleep(0.01)
    return [number, ctx.attempt]


@capped_app.task(
    queue="guarded",
    retry=Backoff.fixed("20ms", max_attempts=5),
    limits=[Limit("calls", "300/s", burst=30, cost=None), Limit("spare", "500/s", burst=50)],
    breaker=Breaker("shaky", failures=3, cooldown="200ms"),
)
async def guarded(ctx: Context, number: int, key: str) -> list[int]:
    """Leave a mark behind everything that a gate can have, alone with its key; every fourth fails at first."""
    async with attempt(ctx, number, **{"guarded": ROOM, f"key {key}": 1}):
        async with capped_app.limits.take("spare", 2) as taken:
            await taken.give_back(1)
        if ctx.attempt == 1 and number % 4 == 0:
            raise RuntimeError("the first attempt fails")
    return [number, ctx.attempt]


async def fresh(ctx: Context, number: int) -> list[int]:
    """Leave a mark after a while, in a queue that may get its first cap meanwhile."""
    async with attempt(ctx, number):
        await asyncio.sleep(0.3)
    return [number, ctx.attempt]


freshes = [capped_app.task(name=f"fresh-{place}", queue=f"fresh-{place}")(fresh) for place in range(FRESH)]
