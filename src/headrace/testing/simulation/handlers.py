"""Tasks of the simulated world. What an attempt does is written in its job's arguments, so that the seed decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

from headrace.engine.context import Context
from headrace.engine.registry import Registry, RunsIn, TaskDef
from headrace.model.backoff import Backoff
from headrace.model.breaker import BreakerRule, OnOpen
from headrace.model.errors import ExecutorCrashedError
from headrace.model.job import JobSpec
from headrace.model.limits import Declared, Gate, Rate, task_cap
from headrace.model.outcome import Cancel, Fail, Retry, Snooze
from headrace.ports.executor import Call
from headrace.testing.simulation.executions import EXECUTIONS

#: The last one holds what has to pass a gate.
QUEUES = MAIN, SIDE, GATED = "main", "side", "gated"
TIMEOUT = timedelta(seconds=2)
BACKOFF = Backoff.exponential(max_attempts=3, base=0.2, cap=1.0)
#: A handler that cleans up when it is stopped takes this long, well within the stop margin of its lease.
CLEANUP_SECONDS = 0.15


def _gated(task: str, queue: str = GATED, **gate: Any) -> JobSpec:
    return JobSpec(task, queue, max_attempts=3, timeout=TIMEOUT, gate=Gate(**gate) if gate else None)


#: The tasks, by name: what their jobs share. All but the plain ones make their queue a gated one.
SPECS = {
    "work": JobSpec("work", MAIN, max_attempts=3, timeout=TIMEOUT),
    "endless": JobSpec("endless", SIDE, max_attempts=2),
    "once": JobSpec("once", SIDE, max_attempts=1, timeout=TIMEOUT, at_most_once=True),
    "rare": JobSpec("rare", SIDE, max_attempts=3, timeout=TIMEOUT),
    "called": JobSpec("called", SIDE, max_attempts=3, timeout=TIMEOUT),
    "plain": _gated("plain"),
    "narrow": _gated("narrow", caps=("task:narrow",)),
    "single": _gated("single", caps=("task:single",)),
    "aside": _gated("aside", SIDE, caps=("task:narrow",), limits=(("meter", 1.0),)),
    "metered": _gated("metered", limits=(("meter", None),)),
    "guarded": _gated("guarded", breakers=("guard",)),
    "brisk": _gated("brisk", breakers=("switch",)),
    "shared": _gated("shared", fair_key="a"),
    "ordered": _gated("ordered", key="x", key_limit=1),
}
#: What a single job may be: a task, or one of its jobs that differs from the others.
KINDS = SPECS | {
    "dear": replace(SPECS["metered"], cost=3.0),
    "shared-b": _gated("shared", fair_key="b"),
    "shared-c": replace(_gated("shared", fair_key="c"), cost=2.0),
    "ordered-y": _gated("ordered", key="y", key_limit=1),
}
CAPS = {"narrow": 2, "single": 1}
METER = Rate(per_second=2.0, burst=2.0)
BREAKERS = {
    "guard": BreakerRule(failures=2, cooldown=timedelta(seconds=2)),
    "switch": BreakerRule(failures=2, cooldown=timedelta(seconds=2), on_open=OnOpen.FAIL),
}
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


def _declared(spec: JobSpec) -> Declared:
    gate = spec.gate or Gate()
    return Declared(
        {task_cap(spec.task): CAPS[spec.task]} if spec.task in CAPS else {},
        {name: METER for name, _ in gate.limits},
        {name: BREAKERS[name] for name in gate.breakers},
    )


@cache
def registry(*, new: bool, capped: bool) -> Registry:
    """Return the tasks that a worker knows; the newer code knows some more, and not every worker those with a cap."""
    tasks = Registry()
    for name, spec in SPECS.items():
        if (new or name not in NEW_TASKS) and (capped or name not in CAPS):
            tasks.add(TaskDef(name, act, RunsIn.LOOP, spec, BACKOFF, _declared(spec)))
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
