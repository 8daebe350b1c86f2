"""Tasks of the simulated world. What an attempt does is written in its job's arguments, so that the seed decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from headrace.engine.context import Context
from headrace.engine.registry import Registry, RunsIn, TaskDef
from headrace.model.backoff import Backoff
from headrace.model.errors import ExecutorCrashedError
from headrace.model.job import JobSpec
from headrace.model.limits import Declared, Gate, task_cap
from headrace.model.outcome import Cancel, Fail, Retry, Snooze
from headrace.ports.executor import Call
from headrace.testing.simulation.executions import EXECUTIONS

MAIN, SIDE = "main", "side"
TIMEOUT = timedelta(seconds=2)
BACKOFF = Backoff.exponential(max_attempts=3, base=0.2, cap=1.0)
#: A handler that cleans up when it is stopped takes this long, well within the stop margin of its lease.
CLEANUP_SECONDS = 0.15

#: The tasks, by name: what their jobs share.
SPECS = {
    "work": JobSpec("work", MAIN, max_attempts=3, timeout=TIMEOUT),
    "endless": JobSpec("endless", SIDE, max_attempts=2),
    "narrow": JobSpec("narrow", MAIN, max_attempts=3, timeout=TIMEOUT, gate=Gate(caps=("task:narrow",))),
    "single": JobSpec("single", MAIN, max_attempts=3, timeout=TIMEOUT, gate=Gate(caps=("task:single",))),
    "once": JobSpec("once", SIDE, max_attempts=1, timeout=TIMEOUT, at_most_once=True),
    "rare": JobSpec("rare", SIDE, max_attempts=3, timeout=TIMEOUT),
    "called": JobSpec("called", SIDE, max_attempts=3, timeout=TIMEOUT),
}
CAPS = {"narrow": 2, "single": 1}
#: Known only to workers with the newer code.
NEW_TASKS = ("rare",)


class HandlerError(Exception):
    """What failing handlers raise."""


async def act(plan: Any, ctx: Context) -> Any:
    """Do what the plan says in this attempt: [kind, how often, seconds]."""
    with EXECUTIONS.get().running(ctx):
        if not isinstance(plan, list):
            return plan  # a callback: its argument is the id of the batch
        return await _act(plan, ctx)


async def _act(plan: list[Any], ctx: Context) -> Any:
    kind, times, seconds = plan
    again = ctx.attempt <= times
    match kind:
        case "steps":
            return [await ctx.step(f"step-{number}", lambda: _slowly(seconds)) for number in range(times)]
        case "stubborn":
            return await _stubborn(seconds)
        case "hang" if again:
            await asyncio.sleep(1_000)
        case _:
            await _slowly(seconds)
    return _ending(kind) if again else ctx.attempt


def _ending(kind: str) -> Any:
    match kind:
        case "raise":
            raise HandlerError("as planned")
        case "retry":
            return Retry("as planned")
        case "snooze":
            return Snooze(0.3)
        case "fail":
            return Fail("as planned")
        case "cancel":
            return Cancel("as planned")
        case _:
            return "done"


async def _slowly(seconds: float) -> float:
    if seconds:
        await asyncio.sleep(seconds)
    return seconds


async def _stubborn(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(CLEANUP_SECONDS)
        raise
    return "done"


@cache
def registry(*, new: bool, capped: bool) -> Registry:
    """Return the tasks that a worker knows; the newer code knows some more, and not every worker those with a cap."""
    tasks = Registry()
    for name, spec in SPECS.items():
        if (new or name not in NEW_TASKS) and (capped or name not in CAPS):
            caps = {task_cap(name): CAPS[name]} if name in CAPS else {}
            tasks.add(TaskDef(name, act, RunsIn.LOOP, spec, BACKOFF, Declared(caps)))
    return tasks


@dataclass(frozen=True, slots=True)
class LoneChild:
    """Runs a suspect, as a child process would; `crashes` says whether the child dies of it."""

    crashes: Callable[[], bool]

    async def run(self, call: Call) -> Any:
        """Run the handler, or die half-way."""
        if self.crashes():
            await asyncio.sleep(0.05)
            raise ExecutorCrashedError("as planned")
        return await call.invoke()

    async def close(self) -> None:
        """Nothing to end."""
