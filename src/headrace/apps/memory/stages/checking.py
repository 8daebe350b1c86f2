"""Stage 2: whether a buffer is to be flushed, and its flushes. It looks and triggers, and never adds anything."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headrace.apps.memory.data.flushes import Reason
from headrace.apps.memory.means import TABLES, settings
from headrace.apps.memory.opening import BUFFER, CHECK, RETRIES, app
from headrace.apps.memory.rules import BREAKERS
from headrace.apps.memory.stages.runs import run_key
from headrace.apps.memory.stages.turns import start_next
from headrace.apps.memory.tables.values import Buffer

#: Flushes, and blobs, that a result names.
MOST_NAMED = 1_000


@app.task(name=CHECK, queue=BUFFER, retry=RETRIES[BUFFER], breaker=BREAKERS["buffer"], timeout="1m")
async def check_buffer(user_id: str, reason: str | None = None) -> dict[str, Any]:
    """Make flushes of a user's buffer if it is full, or for a `reason` of its own; begin the first that waits.

    Returns what is to be worked on: `{user_id, blob_ids, flushes, priority, created_at, trigger_events}`, the last of
    which says whether change events asked for it; and under which names the ends of these flushes are `told`. Of a user
    with very much to do the last are named: they are worked on in their order, so that the others end before.
    """
    # First: what comes into the buffer from here on leads to another check.
    told = await TABLES.take_check(user_id)
    buffer = await TABLES.buffer(user_id)
    terms = settings()
    why = reason_of(buffer, reason, terms.buffer_tokens, idle_since=datetime.now(UTC) - terms.idle_flush)
    if why is not None:
        await TABLES.make_flushes(user_id, why, most_tokens=terms.most_tokens, full=terms.buffer_tokens)
    started = await start_next(user_id)
    last = started.unfinished[-MOST_NAMED:]
    return {
        "user_id": user_id,
        "flushes": [str(flush.id) for flush in last],
        "told": [run_key(flush) for flush in last],
        "blob_ids": [str(blob) for flush in last for blob in flush.blob_ids][-MOST_NAMED:],
        "priority": started.priority,
        "created_at": datetime.now(UTC).isoformat(),
        "trigger_events": told and reason != Reason.IDLE,
    }


def reason_of(buffer: Buffer, given: str | None, full: int, *, idle_since: datetime) -> Reason | None:
    """Return why a buffer is flushed now; None: it is not.

    What was idle when the look was asked for, and got something since, is not idle.
    """
    if not buffer.rows:
        return None
    is_busy = buffer.newest_at is not None and buffer.newest_at > idle_since
    if given is not None and not (given == Reason.IDLE and is_busy):
        return Reason(given)
    return Reason.FULL if buffer.tokens > full else None
