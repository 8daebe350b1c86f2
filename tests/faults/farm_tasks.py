"""Tasks that run on a Celery farm in tests. What they do is noted in a file, one JSON line each."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from headrace import App, Backoff, Cancel, Context, Fail, Retry, Snooze, chain, map_

LOG, GATES = "FARM_LOG", "FARM_GATES"


@asynccontextmanager
async def lifespan(_app: App) -> AsyncIterator[None]:
    """Fail while a test says so, or take longer than most tasks may; not in the process of the test."""
    root = Path(os.environ[GATES] if "HEADRACE_CELERY_BROKER_URL" in os.environ else os.devnull)
    if (root / "lifespan fails").exists():
        raise ConnectionRefusedError("a cache is away")
    if (root / "lifespan is slow").exists():
        await asyncio.sleep(3)
    yield


app = App(lifespan=lifespan)
app.works_runs = True


def note(kind: str, number: int) -> None:
    """Append one effect."""
    line = json.dumps({"kind": kind, "number": number, "pid": os.getpid(), "parent": os.getppid(), "at": time.time()})
    handle = os.open(os.environ[LOG], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    try:
        os.write(handle, line.encode() + b"\n")
    finally:
        os.close(handle)


async def opened(gate: str) -> None:
    """Wait until a test opens a gate."""
    while not (Path(os.environ[GATES]) / gate).exists():
        await asyncio.sleep(0.01)


@app.task
async def effect(number: int) -> int:
    """Note that it ran."""
    note("run", number)
    return number * 2


@app.task
def in_thread(number: int, ctx: Context) -> list[Any]:
    """Run in a thread, with a step."""
    receipt = app.sync(ctx.step("pay", lambda: f"receipt {number}"))
    return [receipt, os.getpid(), ctx.attempt, ctx.last_try]


@app.task(queue="here")
async def here() -> int:
    """Run where the worker is."""
    return os.getpid()


@app.task(retry=Backoff.fixed(max_attempts=3, delay="10ms"))
async def end_with(how: str, ctx: Context) -> str:
    """End in one of the ways there are, and log it."""
    ctx.log.info("ends with %s", how)
    match how:
        case "snooze" if ctx.attempt == 1:
            return Snooze("10ms")  # type: ignore[return-value]
        case "retry":
            return Retry("again", delay="10ms")  # type: ignore[return-value]
        case "fail":
            return Fail("no")  # type: ignore[return-value]
        case "cancel":
            return Cancel("no")  # type: ignore[return-value]
        case "raise":
            raise ValueError(how)
    return how


@app.task
async def paid_then(number: int, gate: str, ctx: Context) -> int:
    """Pay in a step, then wait for a gate."""

    def pay() -> int:
        note("paid", number)
        return number

    amount: int = await ctx.step("pay", pay)
    note("hold", number)
    await opened(gate)
    note("done", number)
    return amount


@app.task(delivery="at_most_once")
async def once(number: int, gate: str) -> int:
    """Run at most once, behind a gate."""
    note("hold", number)
    await opened(gate)
    return number


@app.task
async def climb(steps: int, ctx: Context) -> int:
    """Store one more step in each attempt, and then die of the next thing."""
    for number in range(steps):
        fresh: list[int] = []
        await ctx.step(f"step-{number}", lambda: fresh.append(number))  # noqa: B023 - called at once
        if fresh:
            os.kill(os.getpid(), signal.SIGKILL)
    return steps


@app.task(timeout="1s", retry=Backoff.fixed(max_attempts=1, delay=0))
async def hasty(number: int) -> int:
    """Have little time."""
    note("run", number)
    return number


@app.task
async def deadly(number: int) -> None:
    """Kill the process that runs it."""
    note("run", number)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(timeout="1s", retry=Backoff.fixed(max_attempts=1, delay=0))
def stubborn(number: int) -> None:
    """Hear nothing."""
    note("hold", number)
    while True:
        time.sleep(0.1)  # noqa: TID251 - a handler that hears nothing


@app.task(timeout="1s", retry=Backoff.fixed(max_attempts=1, delay=0))
async def spin(number: int) -> None:
    """Keep the event loop to itself."""
    note("hold", number)
    while True:
        time.sleep(0.1)  # noqa: TID251 - a handler that blocks its loop


@app.task(stall_timeout="400ms", retry=Backoff.fixed(max_attempts=1, delay=0))
async def reports(number: int, ctx: Context) -> int:
    """Report progress so often, and then fall silent."""
    for _ in range(number):
        await asyncio.sleep(0.2)
        ctx.progress()
    await asyncio.sleep(0 if number else 60)
    return number


@app.task
async def parked(number: int) -> Any:
    """Wait for a signal without a slot."""
    return await app.wait_for(f"farm-{number}", "1m")


@app.task
async def emitting(number: int, ctx: Context) -> None:
    """Let an event leave with its success."""
    ctx.emit("Shop.Order.Packed", {"number": number}, aggregate_id=str(number))


@app.task
async def write_file(size: int) -> dict[str, Any]:
    """Store a file, and return a value too large for a row."""
    return {"file": await app.files.put(b"x" * size), "text": "y" * size}


@app.task
async def read_file(made: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Read them."""
    assert ctx.run is not None
    data = await app.files.get(made["file"])
    return {"bytes": len(data), "text": len(made["text"]), "node": ctx.run.node, "pid": os.getpid()}


@app.task
async def numbers(count: int) -> list[int]:
    """Return the entries of a map."""
    return list(range(count))


@app.task(queue="here")
async def total(doubled: list[int]) -> int:
    """Sum them up in the worker."""
    return sum(doubled)


files_flow = app.workflow("files", write_file.s() | read_file.s())


@app.workflow("doubles")
def doubles(count: int) -> Any:
    """Map on the farm, sum up here."""
    return chain(numbers.s(count), map_(effect.s()), total.s())
