"""The app of the worker processes, and the log its handlers keep: one line per effect, on disk before they go on.

The log is the independent evidence: it knows nothing of the store.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import threading
import time
from asyncio import sleep
from pathlib import Path
from typing import Any

from headrace import App, Backoff, Context
from tests.faults.cancelling import cancelling

#: The file of the effects, and the directory of the gates.
LOG, GATES = "FAULTS_LOG", "FAULTS_GATES"
#: Bytes that `eat_memory` takes at once and at most; the bound of the test lies far below.
MEAL, MOST_EATEN = 8_000_000, 4_000_000_000

app = App()


def note(event: str, number: int = 0, **facts: Any) -> None:
    """Write one line to the log and wait until it is on disk."""
    line = {"event": event, "number": number, "pid": os.getpid(), "at": time.time(), **facts}
    log = os.open(os.environ[LOG], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    try:
        os.write(log, json.dumps(line).encode() + b"\n")
        if event != "start":
            os.fsync(log)
    finally:
        os.close(log)


def gate_is_open(name: str) -> bool:
    """Return whether the test has opened a gate."""
    return (Path(os.environ[GATES]) / name).exists()


def block(seconds: float) -> None:
    """Hold the calling thread, and with it whatever runs on it."""
    threading.Event().wait(seconds)


@app.task
async def effect(number: int, pause: float = 0.0) -> int:
    """Do something that can be seen from outside, after a while."""
    note("start", number)
    await sleep(pause)
    note("effect", number)
    return number


@app.task
async def mark(number: int) -> None:
    """Leave a line and nothing else."""
    note("start", number)


@app.task
async def nap(seconds: float) -> None:
    """Do nothing for a while, and leave no line."""
    await sleep(seconds)


@app.task
def effect_in_thread(number: int, pause: float = 0.0) -> int:
    """Do it in a thread."""
    note("start", number)
    block(pause)
    note("effect", number)
    return number


@app.task
async def wait_at(gate: str, ctx: Context) -> int:
    """Wait until the test opens a gate."""
    note("start", ctx.attempt, gate=gate)
    try:
        while not gate_is_open(gate):
            await sleep(0.01)
    except BaseException:
        note("stopped", ctx.attempt, gate=gate)
        raise
    note("effect", ctx.attempt, gate=gate)
    return ctx.attempt


@app.task(delivery="at_most_once")
async def wait_once(gate: str) -> None:
    """Wait at a gate, and must not be run again."""
    note("start", gate=gate)
    while not gate_is_open(gate):
        await sleep(0.01)


@app.task
async def block_loop(gate: str, ctx: Context) -> int:
    """Block the event loop of the worker until the test opens a gate, on the first attempt."""
    note("start", ctx.attempt, gate=gate)
    while ctx.attempt == 1 and not gate_is_open(gate):
        block(0.05)
    note("effect", ctx.attempt, gate=gate)
    return ctx.attempt


@app.task
async def sleep_in_loop(seconds: float, ctx: Context) -> int:
    """Be the async handler that sleeps as sync code does."""
    note("start", ctx.attempt)
    time.sleep(seconds)  # noqa: TID251 - the fault under test
    note("effect", ctx.attempt)
    return ctx.attempt


@app.task
async def hold_gil(seconds: float, ctx: Context) -> int:
    """Stop every thread of the process, on the first attempt."""
    note("start", ctx.attempt)
    if ctx.attempt == 1:
        keep_gil(seconds)
    note("effect", ctx.attempt)
    return ctx.attempt


@app.task
def hold_gil_in_thread(seconds: float, ctx: Context) -> int:
    """Do it from a thread."""
    note("start", ctx.attempt)
    if ctx.attempt == 1:
        keep_gil(seconds)
    note("effect", ctx.attempt)
    return ctx.attempt


@app.task
async def match_for_long(letters: int, ctx: Context) -> int:
    """Do it as programs do it by mistake: a pattern that needs twice as long for each letter."""
    note("start", ctx.attempt)
    if ctx.attempt == 1:
        re.match(r"(a+)+$", "a" * letters + "b")
    note("effect", ctx.attempt)
    return ctx.attempt


def keep_gil(seconds: float) -> None:
    """Make one C call that keeps the lock of the interpreter: unlike CDLL, PyDLL does not let go of it."""
    ctypes.PyDLL(None).usleep(round(seconds * 1_000_000))


@app.task(timeout=1, retry=Backoff.fixed(0, max_attempts=2))
async def stuck(gate: str, ctx: Context) -> int:
    """Block the event loop beyond the timeout, so that the worker itself cannot end the attempt."""
    note("start", ctx.attempt, gate=gate)
    while ctx.attempt == 1 and not gate_is_open(gate):
        block(0.05)
    return ctx.attempt


@app.task(retry=Backoff.fixed("50ms", max_attempts=2))
async def steps(number: int, ctx: Context) -> list[Any]:
    """Store a checkpoint, then wait at a gate on the first attempt."""
    paid = await ctx.step("pay", lambda: _pay(number))
    if ctx.attempt == 1:
        while not gate_is_open("steps"):
            await sleep(0.01)
    return [paid, ctx.attempt]


@app.task(cpu=True, retry=Backoff.fixed("50ms", max_attempts=2))
def steps_in_child(number: int, ctx: Context) -> list[Any]:
    """Store a checkpoint from a sync handler in a child process, then fail once."""
    paid = app.sync(ctx.step("pay", lambda: _pay(number)))
    if ctx.attempt == 1:
        raise RuntimeError("after the step")
    return [paid, os.getpid(), ctx.attempt]


@app.task(cpu=True)
def hold_in_child() -> None:
    """Run in a child until somebody ends it."""
    note("start")
    block(600)


@app.task(cpu=True)
async def steps_in_child_async(number: int, ctx: Context) -> list[Any]:
    """Store a checkpoint from an async handler in a child process."""
    return [await ctx.step("pay", lambda: _pay(number)), os.getpid(), ctx.attempt]


def _pay(number: int) -> str:
    note("paid", number)
    return f"receipt {number}"


@app.task
def kill_worker(number: int) -> None:
    """Kill the process that runs it, whatever that is."""
    note("start", number)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
def eat_memory(ctx: Context) -> None:
    """Eat memory until somebody ends it; while it has neighbours not before the test says so."""
    note("start", 0, attempt=ctx.attempt)
    while ctx.attempt <= 2 and not gate_is_open(f"eat-{ctx.attempt}"):
        block(0.01)
    eaten = []
    while len(eaten) * MEAL < MOST_EATEN:
        # Filled, for what is only reserved is not there.
        eaten.append(b"x" * MEAL)
        block(0.002)
    note("survived", len(eaten))


@app.task
async def neighbour(number: int, crashes: int, ctx: Context) -> int:
    """Run while its neighbour takes the worker along, so many times; then do its work."""
    note("start", number)
    while ctx.attempt <= crashes:
        await sleep(0.05)
    note("effect", number)
    return number


@app.task(retry=Backoff.fixed(0, max_attempts=2))
async def careful(number: int, ctx: Context, at: int = 0) -> list[Any]:
    """Keep steps and submit more under keys; the first attempt is cancelled when it waits for the `at`-th time."""
    note("start", number)
    return await cancelling(_carefully(number, ctx), at if ctx.attempt == 1 else 0)


async def _carefully(number: int, ctx: Context) -> list[Any]:
    first = await ctx.step("first", lambda: os.urandom(8).hex())
    child = await effect.options(key=f"child-{number}").enqueue(1_000 + number)
    batch = await app.submit(effect, range(10_000 + 10 * number, 10_010 + 10 * number), key=f"items-{number}")
    await child.status()
    await batch.progress()
    second = await ctx.step("second", lambda: os.urandom(8).hex())
    return [ctx.attempt, first, second]


@app.task
async def many_steps(number: int, count: int, ctx: Context) -> None:
    """Keep steps for a while."""
    note("start", number)
    for step in range(count):
        await ctx.step(str(step), lambda: number)


@app.task
async def report(batch_id: str) -> None:
    """Be the callback of a batch."""
    note("closed", batch=batch_id)
