"""Draining: a queue takes no more jobs, and what it has runs to its end.

Guaranteed: once `done` is told, the queue was empty (nothing ready, scheduled, running or parked) at a moment when
every process had heard that it is closed. Not guaranteed: that it ends. Jobs that are due in a week wait a week, and
nothing runs without a worker.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import timedelta

from headrace.model.backlog import Drained
from headrace.model.errors import DrainStoppedError, QueuePausedError
from headrace.model.job import JobState
from headrace.ports.stores import Stores

#: After so long every process has heard that the queue is closed, and what it let in before is stored.
HEARD_SECONDS = 1.5
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
#: Counting reads all that is not final in the store: it may take this part of the time.
COUNT_LOAD = 0.1


async def drain_queue(
    stores: Stores, queue: str, *, timeout: timedelta | None = None, on_look: Callable[[Drained], None] | None = None
) -> Drained:
    """Close a queue's intake and wait until nothing of it is left, or until `timeout`; return how it stands then.

    The queue stays closed. With a timeout below `HEARD_SECONDS` an empty queue is told as `empty`, but neither `heard`
    nor `done`: who has not heard of it may still let jobs in. `on_look` is told how far it is. Raises QueuePausedError
    when the queue is paused, for then it would never end, and DrainStoppedError when somebody opens it meanwhile.
    """
    loop = asyncio.get_running_loop()
    await _check_runs(stores, queue)
    await stores.control.set_queue_closed(queue, closed=True)
    closed_at = loop.time()
    end = math.inf if timeout is None else closed_at + timeout.total_seconds()
    pause = FIRST_PAUSE
    while True:
        began = loop.time()
        drained = await _look(stores, queue, heard=began - closed_at >= HEARD_SECONDS)
        if on_look is not None:
            on_look(drained)
        if drained.done or loop.time() >= end:
            return drained
        took = loop.time() - began
        await asyncio.sleep(max(0.0, min(max(pause, took / COUNT_LOAD), end - loop.time())))
        pause = min(pause * 1.5, LONGEST_PAUSE)
        await _check_runs(stores, queue, closed=True)


async def _look(stores: Stores, queue: str, *, heard: bool) -> Drained:
    counts = await stores.inspect.live_jobs(queue)
    left = {
        state.value: counts.get(state, 0)
        for state in (JobState.SCHEDULED, JobState.READY, JobState.RUNNING, JobState.PARKED)
    }
    return Drained(queue, **left, heard=heard, done=heard and not any(left.values()))


async def _check_runs(stores: Stores, queue: str, *, closed: bool = False) -> None:
    state = (await stores.control.queue_states()).get(queue)
    if state is not None and state.paused:
        raise QueuePausedError.of(queue)
    if closed and (state is None or not state.closed):
        raise DrainStoppedError.of(queue)


async def resume_queue(stores: Stores, queue: str) -> None:
    """Undo a pause and a drain: jobs are claimed and enqueued again, the latter everywhere within a second."""
    state = (await stores.control.queue_states()).get(queue)
    if state is not None and state.closed:
        await stores.control.set_queue_closed(queue, closed=False)
    await stores.control.set_queue_paused(queue, paused=False)
    stores.notifier.hint(f"queue:{queue}")
