"""Tasks behind limits, for worker processes; each attempt writes to a log what it was, and from when to when."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from headrace import App, Backoff, Breaker, Limit

LOG, TARGET = "LIMITS_LOG", "LIMITS_TARGET"

app = App()
app.queue("fair", fair="batch")


@asynccontextmanager
async def attempt(kind: str, value: Any) -> AsyncIterator[None]:
    """Write the line of an attempt when it ends, however it does."""
    began = time.time()
    try:
        yield
    finally:
        line = json.dumps([kind, value, began, time.time(), os.getpid()]) + "\n"
        log = os.open(os.environ[LOG], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        try:
            os.write(log, line.encode())
        finally:
            os.close(log)


@app.task(queue="fair")
async def share(name: str) -> None:
    """Use a share of its batch."""
    async with attempt("share", name):
        await asyncio.sleep(0.002)


@app.task(queue="keys")
async def keyed(name: str) -> None:
    """Use the share that it was enqueued with."""
    async with attempt("keyed", name):
        await asyncio.sleep(0.005)


@app.task(queue="narrow", concurrency=3)
async def narrow(number: int) -> None:
    """Be one of three."""
    async with attempt("narrow", number):
        await asyncio.sleep(0.02)


@app.task(queue="chain", concurrency=1)
async def link(number: int) -> None:
    """Be the only one."""
    async with attempt("link", number):
        pass


@app.task(queue="ordered", retry=Backoff.fixed(0.05, max_attempts=3))
async def ordered(number: int) -> None:
    """Fail twice where the number is odd."""
    async with attempt("ordered", number):
        if number % 2 and _count("ordered", number) < 2:
            raise ValueError(number)


@app.task(queue="rated", limits=[Limit("api", "20/s", burst=1)])
async def rated(number: int) -> None:
    """Take one of twenty units a second."""
    async with attempt("rated", number):
        pass


@app.task(
    queue="guarded",
    retry=Backoff.fixed(0.01, max_attempts=50),
    breaker=Breaker("target", failures=3, cooldown="400ms"),
)
async def guarded(number: int) -> None:
    """Fail while the target is down."""
    async with attempt("guarded", number):
        await asyncio.sleep(0.01)
        if not Path(os.environ[TARGET]).exists():
            raise OSError("down")


def _count(kind: str, value: Any) -> int:
    return sum(line[:2] == [kind, value] for line in read_log())


def read_log(path: str | None = None) -> list[Any]:
    """Return the lines written so far."""
    log = Path(path or os.environ[LOG])
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
