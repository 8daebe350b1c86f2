"""The tasks of the benchmark as an app of Headrace."""

from __future__ import annotations

import asyncio

from headrace import App
from headrace.bench.notes import note, note_delay

app = App()


@app.task(name="noop")
async def noop(number: int) -> None:
    """Do nothing."""


@app.task(name="stamp")
async def stamp(sent: float) -> None:
    """Note the time since `sent`."""
    note_delay(sent)


@app.task(name="nap")
async def nap(name: int) -> None:
    """Take 10 ms."""
    await asyncio.sleep(0.01)
    note(str(name))


@app.task(name="doze")
async def doze(number: int) -> None:
    """Take a second."""
    await asyncio.sleep(1)


@app.task(name="shared", queue="fair")
async def shared(number: int) -> None:
    """Do nothing, in a queue of fair shares."""


@app.task(name="keyed", queue="keys")
async def keyed(number: int) -> None:
    """Do nothing, in a queue of jobs with concurrency keys."""


@app.task(name="hold", queue="keys", timeout="1h")
async def hold(number: int) -> None:
    """Take a slot and a key until the worker ends."""
    await asyncio.sleep(3_600)


@app.task(name="closed")
async def closed(batch_id: str) -> None:
    """Note when the callback of a batch starts."""
    note("closed")


@app.task(name="scatter")
async def scatter(count: int) -> None:
    """Submit so many jobs with a callback for when all are done."""
    await app.submit(noop, list(range(count)), on_close=closed)
