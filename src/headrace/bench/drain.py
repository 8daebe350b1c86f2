"""The drain: jobs wait, a worker process starts, and it counts what the store records as done.

The worker's own start is left out: the clock runs from the first moment at which a job is seen done to the moment at
which all are, and the rate is of the jobs in between. Looks at the store grow rarer while it works and dense at the
end, so that counting costs little and the end is known to a few milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from headrace.bench.contenders.base import Contender
from headrace.bench.order import Order
from headrace.bench.processor import cpu_seconds
from headrace.bench.work import WorkerProcess, working

#: Seconds between two looks while nothing is done yet, and at the end.
CLOSEST = 0.005
RAREST = 0.5
#: A store that records nothing for so long has stalled.
STALLED_SECONDS = 60.0


class StalledError(Exception):
    """Nothing was recorded done for a minute."""


class TooFewJobsError(Exception):
    """All jobs were done at the first look, so there is no rate. Measure more (`--jobs`)."""


@dataclass(frozen=True, slots=True)
class Look:
    """How much was done at a time of the monotonic clock, and the processor time used until then."""

    at: float
    done: int
    worker_cpu: float
    server_cpu: float


async def drain(contender: Contender, order: Order) -> dict[str, float]:
    """Measure one worker process on `order.jobs` waiting jobs."""
    await contender.fill(order.jobs)
    return await drain_filled(contender, order)


async def drain_filled(contender: Contender, order: Order, *, before: int = 0) -> dict[str, float]:
    """Measure one worker process until `order.jobs` more than `before` are done."""

    async def look(worker: WorkerProcess) -> Look:
        worker.check()
        done = await contender.done() - before
        cpu = [cpu_seconds(pid) or 0.0 for pid in (worker.pid, order.server_pid)]
        return Look(time.monotonic(), done, *cpu)

    async with working(contender) as worker:
        first = await _first(partial(look, worker))
        if first.done >= order.jobs:
            raise TooFewJobsError(str(TooFewJobsError.__doc__))
        last = await _last(partial(look, worker), order, first)
        return {**_figures(first, last, order), "first_done_seconds": first.at - worker.started_at}


async def _first(looking: Callable[[], Awaitable[Look]]) -> Look:
    deadline = time.monotonic() + STALLED_SECONDS
    while True:
        look = await looking()
        if look.done > 0:
            return look
        if look.at > deadline:
            raise StalledError(f"nothing was recorded done within {STALLED_SECONDS:g} s of the worker's start")
        await asyncio.sleep(CLOSEST)


async def _last(looking: Callable[[], Awaitable[Look]], order: Order, first: Look) -> Look:
    look, moved_at = first, first.at
    while look.done < order.jobs:
        await asyncio.sleep(pause(first, look, order.jobs))
        before, look = look, await looking()
        moved_at = look.at if look.done > before.done else moved_at
        if look.at - moved_at > STALLED_SECONDS:
            raise StalledError(f"stuck at {look.done} of {order.jobs} done for {STALLED_SECONDS:g} s")
    return look


def pause(first: Look, now: Look, jobs: int) -> float:
    """Return how long not to look: half of what is expected to remain, within bounds."""
    rate = (now.done - first.done) / (now.at - first.at) if now.at > first.at else 0.0
    if not rate:
        return CLOSEST
    return min(max((jobs - now.done) / rate / 2, CLOSEST), RAREST)


def _figures(first: Look, last: Look, order: Order) -> dict[str, float]:
    seconds, jobs = last.at - first.at, last.done - first.done
    figures = {"done": last.done, "seconds": seconds, "per_second": jobs / seconds}
    figures["worker_us"] = (last.worker_cpu - first.worker_cpu) / max(jobs, 1) * 1e6
    if order.server_pid is not None:
        figures["server_us"] = (last.server_cpu - first.server_cpu) / max(jobs, 1) * 1e6
    return figures
