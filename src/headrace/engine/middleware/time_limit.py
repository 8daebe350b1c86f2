"""Time limit: an attempt ends at its timeout, or when it reports no activity for its stall timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.engine.attempt import Attempt, Proceed
from headrace.engine.stepping import begin, resume
from headrace.model.errors import TaskTimeoutError


async def limit_time(attempt: Attempt, proceed: Proceed) -> Any:
    """Run the attempt within its time, counted from its start; raises TaskTimeoutError.

    A handler in a thread cannot be stopped: it is told (`ctx.cancelled`) and no longer waited for. A farm keeps the
    time itself, from when it begins.
    """
    if attempt.remote:
        return await proceed(attempt)
    hard_end = asyncio.get_running_loop().time() + attempt.call.timeout
    if attempt.task.stall_timeout is not None:
        return await _limited(attempt, proceed(attempt), hard_end)
    handler = proceed(attempt)
    try:
        awaited = begin(handler)
    except StopIteration as end:
        # It never waited for anything, so there was nothing that a timer could have ended.
        return end.value
    return await _limited(attempt, resume(handler, awaited), hard_end)


async def _limited(attempt: Attempt, handler: Awaitable[Any], hard_end: float) -> Any:
    loop = asyncio.get_running_loop()
    stall = attempt.task.stall_timeout
    try:
        async with asyncio.timeout_at(hard_end) as limit:
            if stall is None:
                return await handler
            with _renewed_by_activity(attempt, limit, hard_end, stall.total_seconds()):
                return await handler
    except (TimeoutError, asyncio.CancelledError):
        # Cancelled though it expired: a task group of the handler left the task's count of cancels raised (see retry).
        if not limit.expired() or attempt.stop_reason is not None:
            raise
        attempt.context.cancelled = True
        stalled = loop.time() < hard_end
        what = f"no activity for {stall}" if stalled else f"ran longer than {attempt.call.timeout:g} s"
        raise TaskTimeoutError(f"{what}; raise timeout= of task {attempt.task.name!r}, or make it faster") from None


@contextmanager
def _renewed_by_activity(attempt: Attempt, limit: asyncio.Timeout, hard_end: float, stall: float) -> Iterator[None]:
    """While the block runs, let what the handler reports put the limit off."""
    loop = asyncio.get_running_loop()
    running = True

    def renew() -> None:
        # A report of a thread may arrive after the handler's end.
        if running and not limit.expired():
            limit.reschedule(min(hard_end, loop.time() + stall))

    attempt.context.on_activity = lambda: _call_on(loop, renew)
    renew()
    try:
        yield
    finally:
        running = False


def _call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(function)
