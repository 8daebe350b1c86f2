"""A worker is killed in the middle of its work and another one takes over, both with default settings.

Every job notes its end. Finished but unrecorded at the kill are the jobs whose end was noted and which the store does
not record as done: those may run again. Nothing may be lost.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections import Counter
from collections.abc import Sequence

from headrace.bench.contenders.base import Contender, UnsupportedError
from headrace.bench.notes import read_notes
from headrace.bench.order import Order
from headrace.bench.work import WorkerProcess, working

#: The kill comes when this share of the jobs has ended.
KILL_AT = 0.3
#: Statements under way at the kill have ended by then.
SETTLED_SECONDS = 0.2
LIMIT_SECONDS = 75.0
#: Begins a command whose processes have a process table of their own.
APART = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
LOOK_SECONDS = 0.01


async def takeover(contender: Contender, order: Order) -> dict[str, float]:
    """Measure one kill amid `order.jobs` jobs of 10 ms."""
    return await _take_over(contender, order, within=())


async def takeover_apart(contender: Contender, order: Order) -> dict[str, float]:
    """Measure it with the victim in a pid namespace of its own, as on another machine: nobody sees that it is gone."""
    check = subprocess.run([*APART, "true"], check=False, capture_output=True)  # noqa: ASYNC221,S603 - ends at once
    if check.returncode != 0:
        raise UnsupportedError("needs the right to make a pid namespace (unshare)")
    return await _take_over(contender, order, within=APART)


async def _take_over(contender: Contender, order: Order, *, within: Sequence[str]) -> dict[str, float]:
    await contender.fill_with("nap", order.jobs)
    async with working(contender, within=within) as victim:
        await _wait_for_ends(victim, int(order.jobs * KILL_AT))
        victim.kill()
        killed_at = time.time()
        await asyncio.sleep(SETTLED_SECONDS)
        before = Counter(note.text for note in read_notes(victim.notes))
        recorded = await contender.done()
        async with working(contender) as heir:
            waited = await _wait_for_all(contender, heir, order.jobs)
            after = Counter(note.text for note in read_notes(heir.notes))
            ends = [note.at for note in read_notes(heir.notes)]
    return {
        "lost": order.jobs - waited,
        "again": sum((before & after).values()),
        "unrecorded": max(len(before) - recorded, 0),
        "recorded_at_kill": recorded,
        "seconds": max(ends, default=time.time()) - killed_at,
        "again_beyond_unrecorded": max(sum((before & after).values()) - max(len(before) - recorded, 0), 0),
    }


async def _wait_for_ends(worker: WorkerProcess, count: int) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(read_notes(worker.notes)) < count:
        worker.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"fewer than {count} jobs ended within {LIMIT_SECONDS:g} s")
        await asyncio.sleep(LOOK_SECONDS)


async def _wait_for_all(contender: Contender, worker: WorkerProcess, jobs: int) -> int:
    """Return how many are recorded done once all are, or when the time is up."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while (done := await contender.done()) < jobs and time.monotonic() < deadline:
        worker.check()
        await asyncio.sleep(LOOK_SECONDS * 5)
    return done
