"""Holding what a handler returned while storage cannot take it: the handler is not called again for that alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from typing import TypeVar

from headrace.engine.attempt import Attempt, describe, stopped
from headrace.engine.middleware.retry import retry_in
from headrace.model.errors import BlobStoreError, HeadraceError
from headrace.model.job import Completion, JobState

LOG = logging.getLogger("headrace.runs")

T = TypeVar("T")

#: Where the storage of values cannot answer, a node begins after this.
AGAIN = timedelta(seconds=5)
#: Seconds between looks at storage that cannot answer, the last one again and again, ...
PAUSES = (0.2, 1.0, 2.0)
#: ... and in all, or the timeout of the attempt if that is shorter.
LONGEST = 30.0


async def patiently(attempt: Attempt, work: Callable[[], Awaitable[T]]) -> T:
    """Return what `work` does, again and again while storage cannot answer, for a bounded time.

    Raises the error in the end, or once the attempt is to stop; one that waiting does not mend at once.
    """
    clock, pauses = asyncio.get_running_loop().time, chain(PAUSES, repeat(PAUSES[-1]))
    until = clock() + min(LONGEST, attempt.call.timeout)
    while True:
        try:
            return await work()
        except HeadraceError as error:
            pause = next(pauses)
            # A store that cannot answer takes no completion either: that waits for as long as the lease lasts.
            is_over = isinstance(error, BlobStoreError) and clock() + pause > until
            if not error.transient or is_over or attempt.stop_reason is not None:
                raise
            LOG.warning("the end of job %s cannot be stored yet, trying again: %s", attempt.job.id, error)
        await asyncio.sleep(pause)


def unstored(attempt: Attempt, completion: Completion, error: HeadraceError) -> Completion | None:
    """Return what becomes of a handler's end that cannot be stored; None: nothing may be written.

    Where its worker stops the job goes back. Otherwise it was a try that failed, and the retry policy decides.
    """
    if attempt.stop_reason is not None:
        return stopped(attempt)
    again = None if attempt.task.spec.at_most_once else retry_in(attempt, error)
    state = JobState.FAILED if again is None else JobState.SCHEDULED
    failed = replace(completion, state=state, result=None, error=describe(error), charged=True)
    return failed if again is None else replace(failed, delay=again)
