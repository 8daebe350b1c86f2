"""Stage 5: event, gists, profile and the buffer's state in one transaction, under the flush's fence."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from headrace import Context, Snooze
from headrace.apps.memory.data.flushes import Held
from headrace.apps.memory.errors import LostFlushError, ProfileBusyError
from headrace.apps.memory.means import TABLES, settings, terms
from headrace.apps.memory.opening import RETRIES, STORAGE, app
from headrace.apps.memory.rules import BREAKERS
from headrace.apps.memory.stages.checking import check_buffer
from headrace.apps.memory.stages.holding import held
from headrace.apps.memory.stages.processing import TURN, give_up, output
from headrace.apps.memory.stages.runs import tell_end
from headrace.apps.memory.stages.turns import start_next
from headrace.apps.memory.tables.values import Conflict, Ended, NotYet
from headrace.apps.memory.writing import Writer

#: A profile that somebody else changes so often while it is merged is left for a later try.
MOST_MERGES = 5


@app.task(name="memory.store_flush", queue=STORAGE, retry=RETRIES[STORAGE], breaker=BREAKERS["storage"], timeout="3m")
async def store_flush(processed: dict[str, Any], ctx: Context) -> Any:
    """Store what a flush came to, and let the next one of its user begin; return what `process_flush` does."""
    flush_id = UUID(processed["flush_id"])
    begun = await TABLES.begin_flush(flush_id, settings().lease)
    if isinstance(begun, NotYet):
        return Snooze(TURN)
    if not isinstance(begun, Ended):
        try:
            async with held(begun):
                await _commit(begun, ctx)
        except LostFlushError:
            return Snooze(TURN)
        except Exception as error:
            await give_up(begun, error, ctx, STORAGE)
            raise
    await _go_on(processed["user_id"])
    ended = begun if isinstance(begun, Ended) else None
    count = processed.get("processed_count", 0)
    told = output(processed["user_id"], str(flush_id), count, processed["told"], ended)
    await tell_end(processed["told"], flush_id, error=told.get("error"))
    return told


async def _commit(flush: Held, ctx: Context) -> None:
    result = await TABLES.load_result(flush.flush.id)
    assert result is not None  # the stage before has kept it
    writer = Writer(app.llm, terms(), ctx.step, sample=flush.flush.round)
    for _ in range(MOST_MERGES):
        answer = await TABLES.commit(flush, result, keep_blobs=settings().keep_blobs)
        if not isinstance(answer, Conflict):
            return
        result = await writer.merge_again(result, await TABLES.profile(flush.flush.user_id))
    raise ProfileBusyError(f"the profile of this flush's user was changed {MOST_MERGES} times while it was merged")


async def _go_on(user_id: str) -> None:
    started = await start_next(user_id)
    if started.unfinished:
        return
    buffer = await TABLES.buffer(user_id)
    if buffer.tokens > settings().buffer_tokens:
        await check_buffer.enqueue(user_id)
