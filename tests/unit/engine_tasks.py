"""Tasks that child processes import: every child makes this app anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from headrace import App, Backoff, Cancel, Context, Fail, Retry, Snooze
from tests.unit.engine_app import QUICK


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[str]:
    """Give handlers the id of the process they run in."""
    yield f"resources of {os.getpid()}"


app = App(settings=QUICK, lifespan=lifespan)
AT_ONCE = Backoff.fixed(0, max_attempts=3)


@dataclass
class Facts:
    """What a child tells of itself."""

    pid: int
    parent: int
    main_thread: bool
    at: datetime


@app.task(cpu=True)
def facts() -> Facts:
    """Run as a sync handler."""
    return Facts(os.getpid(), os.getppid(), threading.current_thread() is threading.main_thread(), datetime.now(UTC))


@app.task(cpu=True)
def chat(ctx: Context) -> None:
    """Log something, and something that is to stay here."""
    ctx.log.info("from the %s", "child")
    ctx.log.warning("password=%s", "hunter22")


@app.task(cpu=True)
async def facts_async(ctx: Context) -> dict[str, Any]:
    """Run as an async handler."""
    left = (ctx.deadline - datetime.now(UTC)).total_seconds()
    return {"pid": os.getpid(), "resources": ctx.resources, "attempt": ctx.attempt, "left": left}


def _raise(error: BaseException) -> Any:
    raise error


ENDINGS: dict[str, Callable[[Context], Any]] = {
    "snooze": lambda ctx: Snooze(0) if ctx.attempt == 1 else "woke up",
    "retry": lambda ctx: Retry("not yet", delay=0),
    "fail": lambda ctx: Fail("no"),
    "cancel": lambda ctx: Cancel("no more"),
    "raise": lambda ctx: _raise(ValueError("wrong")),
    "exit": lambda ctx: sys.exit(3),
    "stop iteration": lambda ctx: next(iter([])),
    "object": lambda ctx: object(),
    "step": lambda ctx: app.sync(ctx.step("one", lambda: 1)),
}


@app.task(cpu=True, retry=AT_ONCE)
def end_with(how: str, ctx: Context) -> Any:
    """End in one of many ways."""
    return ENDINGS[how](ctx)


@app.task(cpu=True)
def noisy() -> str:
    """Print, read and start a program that does both."""
    print('{"completion": "not mine"}', flush=True)
    subprocess.run([sys.executable, "-c", "import sys; print(sys.stdin.read())"], check=True)
    return sys.stdin.read()


@app.task(cpu=True, timeout=1, retry=Backoff.none())
def spin(marker: str) -> None:
    """Never end, with a program of its own."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(marker).write_text(f"{os.getpid()} {sleeper.pid}")
    while True:
        pass


@app.task(cpu=True, timeout="2m", stall_timeout="1s", retry=Backoff.none())
def report(seconds: float, ctx: Context) -> None:
    """Report activity for some time, then fall silent."""
    end = monotonic() + seconds
    while monotonic() < end:
        ctx.progress("still here")
        threading.Event().wait(0.05)
    threading.Event().wait(60)


@app.task(cpu=True, retry=AT_ONCE)
def die(log: str) -> None:
    """Kill the process that runs it, each time."""
    _note(log)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(cpu=True, delivery="at_most_once")
def die_once(log: str) -> None:
    """Kill the process that runs it, and must not be run again."""
    _note(log)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
def suspect(log: str, deadly: bool) -> str:
    """Run in a thread, unless suspected."""
    _note(log)
    if deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"survived in {os.getpid()}"


def _note(log: str) -> None:
    with Path(log).open("a") as file:
        file.write(f"{os.getpid()}\n")


@app.task(batch_size=10, queue="pids")
async def pids(numbers: list[int]) -> list[list[int]]:
    """Tell for each job the process and the size of the call."""
    return [[os.getpid(), len(numbers)] for _ in numbers]


@app.task(cpu=True)
def key_of(ctx: Context) -> str:
    """Tell the key that it would send along."""
    return ctx.idempotency_key
