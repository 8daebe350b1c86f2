"""The sweep: what no message tells of. Buffers that nothing came into, leases that ended, and runs that failed."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

from headrace import Context, StoreUnavailableError
from headrace.apps.memory.data.flushes import Flush, FlushState, Reason
from headrace.apps.memory.means import TABLES, settings
from headrace.apps.memory.opening import BUFFER, RETRIES, app
from headrace.apps.memory.stages.checking import check_buffer
from headrace.apps.memory.stages.sharing import gather, overdue
from headrace.apps.memory.stages.runs import WORKFLOW, may_share, priority_at, run_key, start_run
from headrace.apps.memory.stages.starting import start_next

LOG = logging.getLogger("headrace.memory")

#: A sweep goes on for so long; then the next minute's begins.
SECONDS = 58.0
#: Users, and flushes, of one pass.
MOST = 500
#: How often a flush that failed for good is taken up again.
MOST_ROUNDS = 3


@app.cron("* * * * *", catch_up="skip", name="memory.sweep", queue=BUFFER, retry=RETRIES[BUFFER], timeout="2m")
async def sweep(ctx: Context) -> int:
    """Look every `[memory] sweep_interval` for a minute; return how much was found."""
    end, found = monotonic() + SECONDS, 0
    while True:
        found += await sweep_once()
        pause = settings().sweep_interval.total_seconds()
        if monotonic() + pause >= end or ctx.cancelled:
            return found
        await asyncio.sleep(pause)


async def sweep_once() -> int:
    """Look once; return how much was found."""
    users = await TABLES.idle_users(settings().idle_flush, MOST)
    for user_id in users:
        await check_buffer.enqueue(user_id, Reason.IDLE.value)
    released = await TABLES.release_expired(MOST)
    again = await TABLES.retry_failed(settings().retry_failed_after, MOST_ROUNDS, MOST)
    for flush in again:
        await start_next(flush.user_id)
    if settings().enable_batching:
        await gather()
    return len(users) + len(released) + len(again) + await _take_up(released)


async def _take_up(released: list[UUID]) -> int:
    """Begin what has no run that goes on: its run ended without it, or was never started."""
    found = 0
    for flush in await TABLES.first_unfinished(MOST):
        if flush.state is FlushState.WAITING and (flush.id in released or not _waits(flush)):
            found += await _restart(flush)
    return found


def _waits(flush: Flush) -> bool:
    return may_share(flush) and not overdue(flush, datetime.now(UTC))


async def _restart(flush: Flush) -> bool:
    try:
        run = await app.find_run_by_key(WORKFLOW, run_key(flush))
        if run is None:
            await start_run(flush, await priority_at(flush, "process"))
            return True
        if not (await run.status()).final:
            return False
        LOG.warning("flush %s of user %s: its run %s ended without it", flush.id, flush.user_id, run.id)
        await TABLES.fail_flush(flush.id, f"its run {run.id} ended without it")
        await start_next(flush.user_id)
    except StoreUnavailableError:
        return False
    return True
