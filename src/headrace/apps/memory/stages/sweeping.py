"""The sweep: what no message tells of. Buffers that nothing came into, leases that ended, and runs that failed.

A job of the cluster does all of it but the leases, which each worker looks at.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace import Context, QueueFullError, Snooze
from headrace.apps.memory.data.flushes import Flush, Reason
from headrace.apps.memory.means import TABLES, level_of, settings
from headrace.apps.memory.opening import BUFFER, RETRIES, app
from headrace.apps.memory.rules import priority_of, score
from headrace.apps.memory.stages.checking import check_buffer
from headrace.apps.memory.stages.runs import WORKFLOW, run_key, tell_end
from headrace.apps.memory.stages.turns import end_lost_batch, gather, start_next
from headrace.apps.memory.stages.watching import look_around

LOG = logging.getLogger("headrace.memory")

_LONG_AGO = "1970-01-01T00:00:00+00:00"
#: How often a sweep begins.
EVERY = timedelta(minutes=1)
#: Users, and flushes, of one pass.
MOST = 500
#: A batch, and a flush, that nothing happened to for so long is looked after.
OVERLOOKED = timedelta(minutes=2)
#: How often a flush that failed for good is taken up again.
MOST_ROUNDS = 3


@app.cron("* * * * *", catch_up="skip", name="memory.sweep", queue=BUFFER, retry=RETRIES[BUFFER], timeout="1m")
async def sweep(ctx: Context, until: str | None = None) -> Any:
    """Look every `[memory] sweep_interval` until the next minute's sweep begins. It holds no slot in between.

    `until`: when that is, of one that no schedule began.
    """
    found = await sweep_once()
    await look_around()
    end = ctx.scheduled_at + EVERY if ctx.scheduled_at is not None else datetime.fromisoformat(until or _LONG_AGO)
    pause = settings().sweep_interval
    return Snooze(pause) if datetime.now(UTC) + pause < end else found


async def begin_sweep() -> None:
    """Sweep until the next minute's sweep begins: the schedule makes none for the minute in which workers begin."""
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    until = (minute + EVERY).isoformat()
    with suppress(QueueFullError):  # then the schedule's is the next one; a worker begins all the same
        await sweep.options(key=f"begin/{until}").enqueue(until)


async def release_leases() -> None:
    """Let flushes wait again whose lease has ended, until cancelled. Each worker does: a sweep dies with its own."""
    while True:
        await asyncio.sleep(settings().sweep_interval.total_seconds())
        try:
            await TABLES.release_expired(MOST)
        except Exception as error:
            LOG.warning("leases that ended were not looked at: %r", error)


async def sweep_once() -> int:
    """Look once; return how much was found."""
    again = await TABLES.retry_failed(settings().retry_failed_after, MOST_ROUNDS, MOST)
    for flush in again:
        await start_next(flush.user_id)
    if settings().enable_batching:
        # What waited for its whole window: the gathering of that was missed.
        await gather(waited=settings().batch_window)
    found = len(again) + await _check_idle()
    return found + await _end_batches() + await _take_up()


async def _check_idle() -> int:
    """Have idle buffers looked at: once each, however often they are found before that is done."""
    users = await TABLES.idle_users(settings().idle_flush, MOST)
    if not users:
        return 0
    async with app.database() as connection, app.transaction(connection):
        tables = TABLES.on(connection)
        noted = await tables.note_checks(users)
        known = await tables.users(noted)
        for user_id in noted:
            priority = priority_of(score(level_of(known.get(user_id)), settings().idle_flush, "buffer", 0))
            options = {"priority": priority, "connection": connection}
            await check_buffer.options(**options).enqueue(user_id, Reason.IDLE.value)
    return len(noted)


async def _end_batches() -> int:
    """Let flushes ask for themselves whose batch's job is gone."""
    return sum([await end_lost_batch(batch_id) for batch_id in await TABLES.stale_batches(OVERLOOKED, MOST)])


async def _take_up() -> int:
    """Begin what waits though it is its turn: its run ended without it, or was never started."""
    return sum([await _restart(flush) for flush in await TABLES.take_overlooked(OVERLOOKED, MOST)])


async def _restart(flush: Flush) -> bool:
    run = await app.find_run_by_key(WORKFLOW, run_key(flush))
    if run is not None and (await run.status()).final:
        LOG.warning("flush %s: its run %s ended without it", flush.id, run.id)
        if await TABLES.fail_flush(flush.id, why := f"its run {run.id} ended without it"):
            await tell_end(run_key(flush), flush.id, error=why)
    elif run is not None:
        return False
    await start_next(flush.user_id)
    return True
