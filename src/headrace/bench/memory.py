"""Memory of a worker process, idle and with many jobs waiting, and how soon after its start the first job runs.

Processes that a worker starts are counted with it; `pss` counts pages they share once.
"""

from __future__ import annotations

import asyncio
import time

from headrace.bench.contenders.base import Contender
from headrace.bench.latency import wait_for_notes
from headrace.bench.order import Order
from headrace.bench.processor import tree_memory_mib
from headrace.bench.work import WorkerProcess, working

SETTLE_SECONDS = 1.0
BUSY_SECONDS = 1.5
LOOK_SECONDS = 0.05


async def memory(contender: Contender, order: Order) -> dict[str, float]:
    """Measure one worker process, then with `order.jobs` jobs of a second waiting."""
    await contender.enqueue("stamp", time.time())
    started = time.time()
    async with working(contender) as worker:
        [first] = (await wait_for_notes(worker, bool))[:1]
        await asyncio.sleep(SETTLE_SECONDS)
        idle = tree_memory_mib(worker.pid)
        await contender.fill_with("doze", order.jobs)
        busy = await _peak(worker)
    return {
        "first_job": first.at - started,
        "idle_rss": idle["rss"],
        "idle_pss": idle["pss"],
        "busy_rss": busy["rss"],
        "busy_pss": busy["pss"],
        "growth": busy["rss"] - idle["rss"],
    }


async def _peak(worker: WorkerProcess) -> dict[str, float]:
    peak = {"rss": 0.0, "pss": 0.0}
    deadline = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < deadline:
        worker.check()
        now = tree_memory_mib(worker.pid)
        peak = {kind: max(peak[kind], now[kind]) for kind in peak}
        await asyncio.sleep(LOOK_SECONDS)
    return peak
