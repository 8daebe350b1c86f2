"""Stage 4: what the model makes of a flush, each answer a checkpoint, the whole kept under the flush's fence."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from headrace import Context, Snooze
from headrace.apps.memory.data.flushes import FlushState, Held
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.errors import LostFlushError
from headrace.apps.memory.means import TABLES, language_for, settings
from headrace.apps.memory.opening import PROCESS, RETRIES, app
from headrace.apps.memory.rules import BREAKERS
from headrace.apps.memory.stages.endings import is_last
from headrace.apps.memory.stages.holding import held
from headrace.apps.memory.stages.runs import run_key, tell_end
from headrace.apps.memory.stages.summaries import Summaries
from headrace.apps.memory.stages.turns import start_next
from headrace.apps.memory.tables.values import Ended, NotYet
from headrace.apps.memory.writing import language_of
from headrace.apps.memory.writing.messages import lines_of, said_in

#: How long a flush waits before it looks again whether an earlier one of its user has ended.
TURN = "2s"


@app.task(name="memory.process_flush", queue=PROCESS, retry=RETRIES[PROCESS], breaker=BREAKERS["process"], timeout="5m")
async def process_flush(flush_id: str, user_id: str, told: str, ctx: Context) -> Any:
    """Work on a flush; return `{success, user_id, flush_id, told, result_ref, processed_count}`, or, of one that has
    failed, `{success, user_id, flush_id, told, error, retry_needed}`."""
    begun = await TABLES.begin_flush(UUID(flush_id), settings().lease)
    if isinstance(begun, NotYet):
        return Snooze(TURN)
    if isinstance(begun, Ended):
        return output(user_id, flush_id, 0, told, begun)
    try:
        async with held(begun):
            await _write(begun, ctx)
    except LostFlushError:
        # Nothing was written. Whoever is still asked to do this job takes the flush up again, with what is paid.
        return Snooze(TURN)
    except Exception as error:
        await give_up(begun, error, ctx, PROCESS)
        raise
    return output(user_id, flush_id, len(begun.flush.blob_ids), told)


async def _write(flush: Held, ctx: Context) -> FlushResult:
    known = await TABLES.load_result(flush.flush.id)
    if known is not None:
        return known
    summaries = Summaries(ctx, flush.flush.round)
    user = await TABLES.get_user(flush.flush.user_id)
    wanted = language_for(user)
    summary = await TABLES.load_summary(flush.flush.id)
    if summary is None:
        summary = await summaries.of_one(flush.blobs, wanted)
    # An answer is known by what was asked: where the profile has changed since an earlier try, that is asked anew.
    profile = await TABLES.profile(flush.flush.user_id)
    language = language_of(said_in(lines_of(flush.blobs)), wanted)
    result = await summaries.writer(language).write(summary, profile, language)
    return await TABLES.save_result(flush, result)


async def give_up(flush: Held, error: Exception, ctx: Context, queue: str) -> None:
    """At the last try, or where another would not help: the flush has failed, and holds up no other of its user."""
    text = f"{type(error).__name__}: {error}"
    if is_last(error, ctx, queue) and await TABLES.fail_flush(flush.flush.id, text, fence=flush.fence):
        await start_next(flush.flush.user_id)
        await tell_end(run_key(flush.flush), flush.flush.id, error=str(error))


def output(user_id: str, flush_id: str, count: int, told: str, ended: Ended | None = None) -> dict[str, Any]:
    """Return what a stage says of a flush; `ended`: it had ended before, and may have failed."""
    facts = {"user_id": user_id, "flush_id": flush_id, "told": told}
    if ended is not None and ended.state is not FlushState.DONE:
        gone = "the flush is not there any more: its user was forgotten, or it was done long ago"
        why = "the flush has failed" if ended.state is FlushState.FAILED else gone
        return {**facts, "success": False, "error": why, "retry_needed": False}
    return {**facts, "success": True, "result_ref": f"flush:{flush_id}", "processed_count": count}
