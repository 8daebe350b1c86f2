"""Pick-up: 20 jobs a second to an idle worker; from before the enqueueing call to the first line of the handler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from headrace.bench.contenders.base import Contender
from headrace.bench.notes import Note, read_notes
from headrace.bench.order import Order
from headrace.bench.work import WorkerProcess, working
from headrace.model.ranks import percentile

PER_SECOND = 20
WARM_UP = 10
WAIT_SECONDS = 30.0
LOOK_SECONDS = 0.005


async def latency(contender: Contender, order: Order) -> dict[str, float]:
    """Measure one worker process for `order.seconds`."""
    async with working(contender) as worker:
        for number in range(WARM_UP):
            await contender.enqueue("stamp", time.time())
            await wait_for_notes(worker, lambda notes, wanted=number: len(notes) > wanted)  # type: ignore[misc]
        sent = await _send(contender, order.seconds)
        notes = await wait_for_notes(worker, lambda notes: len(notes) >= sent + WARM_UP)
    delays = [float(note.text) * 1000 for note in notes[WARM_UP:]]
    return {"p50": percentile(delays, 0.5), "p99": percentile(delays, 0.99), "jobs": len(delays)}


async def _send(contender: Contender, seconds: float) -> int:
    begun, count = time.monotonic(), int(seconds * PER_SECOND)
    for number in range(count):
        await asyncio.sleep(max(begun + number / PER_SECOND - time.monotonic(), 0))
        await contender.enqueue("stamp", time.time())
    return count


async def wait_for_notes(worker: WorkerProcess, enough: Callable[[list[Note]], bool]) -> list[Note]:
    """Return the notes of a worker once there are enough. Raises TimeoutError, WorkerEndedError."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not enough(notes := read_notes(worker.notes)):
        worker.check()
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{len(notes)} handlers ran within {WAIT_SECONDS:g} s; the worker wrote: {worker.written}"
            )
        await asyncio.sleep(LOOK_SECONDS)
    return notes
