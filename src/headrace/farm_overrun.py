"""A call beyond its time that heeds nothing: its end is stored from beside its event loop, which it may block.

Without that its process would just be gone, which is a crash, and a handler that is too slow would be taken for poison.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import AsyncExitStack
from typing import NoReturn

from headrace.app import App
from headrace.engine.attempt import Attempt, Failed, describe, run_attempt
from headrace.engine.middleware.retry import retry_in
from headrace.farm_calls import FarmCalls, end_process, kept_end
from headrace.model.errors import TaskTimeoutError
from headrace.model.farm import ENDED, Fence
from headrace.model.job import Completion
from headrace.wiring import open_stores

LOG = logging.getLogger("headrace.farm")

#: A store that does not take the end within this has not got it: the process ends, which counts as its death.
KEEP_SECONDS = 10.0


def end_overdue(calls: FarmCalls, fence: Fence) -> NoReturn:
    """End this process; what its call had its time for, and used up, has ended with `timeout`."""
    attempt = calls.overran
    if attempt is not None:
        # An event loop needs a thread without one.
        keeping = threading.Thread(target=_keep, args=(calls.app, fence, attempt), daemon=True)
        keeping.start()
        keeping.join(KEEP_SECONDS + 1)
    end_process(f"job {fence.job} heeds neither its timeout nor its end")


def _keep(app: App, fence: Fence, attempt: Attempt) -> None:
    try:
        asyncio.run(_keep_end(app, fence, attempt))
    except Exception as error:
        LOG.warning("that job %s is beyond its time cannot be stored: %r", fence.job, error)


async def _keep_end(app: App, fence: Fence, attempt: Attempt) -> None:
    async with asyncio.timeout(KEEP_SECONDS), AsyncExitStack() as stack:
        completion = await timed_out(attempt)
        if completion is None:
            return
        # The stores that are open belong to the loop that may be blocked.
        stores = await open_stores(app.settings, stack)
        stack.push_async_callback(stores.close)
        await stores.jobs.save_step(
            fence.job, attempt=fence.attempt, session=fence.session, name=ENDED, value=kept_end(fence, completion)
        )


async def timed_out(attempt: Attempt) -> Completion | None:
    """Return what becomes of an attempt that used its time up, by its retries; None when it was stopped."""
    message = (
        f"ran longer than {attempt.call.timeout:g} s and did not heed its end; let task {attempt.task.name!r} give way "
        "with `await`, or look at ctx.cancelled"
    )
    error = TaskTimeoutError(message)

    async def over(of: Attempt) -> Failed:
        return Failed(describe(error), retry_in(of, error))

    return await run_attempt(attempt, over)
