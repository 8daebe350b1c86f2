"""Small buffers of several users in one call of the model: who waits for others, for how long, and what comes of it.

A shared call brings summaries and nothing else. It is asked for nobody's profile, so that what one user is known for
cannot come near another's; and where a part of its answer is missing or wrong, that flush asks for itself.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from headrace import Context
from headrace.apps.memory.data.flushes import Flush
from headrace.apps.memory.means import TABLES, settings
from headrace.apps.memory.meters import METER
from headrace.apps.memory.opening import BUFFER, PROCESS, RETRIES, app
from headrace.apps.memory.rules.batching import Candidate, batch_size, group_flushes
from headrace.apps.memory.rules.priority import priority_of, score
from headrace.apps.memory.stages.summaries import Summaries
from headrace.apps.memory.stages.runs import may_share, priority_at, start_run

#: Flushes that one look groups at most.
MOST_AT_ONCE = 500


async def wait_for_others() -> None:
    """See to it that what waits is grouped soon: at the end of the window, or now if there is enough of it."""
    window = settings().batch_window.total_seconds()
    waiting = await TABLES.waiting_unbatched(settings().max_batch_size)
    if len(waiting) >= settings().max_batch_size or not window:
        await gather()
        return
    number = int(datetime.now(UTC).timestamp() // window)
    at = datetime.fromtimestamp((number + 1) * window, UTC)
    await gather_flushes.options(key=f"window/{number}", run_at=at).enqueue()


@app.task(name="memory.gather_flushes", queue=BUFFER, retry=RETRIES[BUFFER], timeout="1m")
async def gather_flushes() -> dict[str, int]:
    """Group what waits for others."""
    return {"batches": await gather()}


async def gather() -> int:
    """Make batches of what waits, and enqueue their calls; return how many. Two who do it at once share nothing."""
    waiting = [one for one in await TABLES.waiting_unbatched(MOST_AT_ONCE) if may_share(one.flush)]
    now = datetime.now(UTC)
    candidates = [
        Candidate(
            one.flush.id, one.flush.user_id, one.flush.tokens, one.language,
            score(one.level, now - one.flush.created_at, "process", one.flush.round),
        )
        for one in waiting
    ]  # fmt: skip
    scores = {one.flush_id: one.score for one in candidates}
    size = batch_size(settings().batch_mode, METER.reading(now), most=settings().max_batch_size)
    made = 0
    for group in group_flushes(candidates, size):
        batch = await TABLES.make_batch(group)
        if batch is not None:
            call = summarise_together.options(key=str(batch), priority=priority_of(max(scores[one] for one in group)))
            await call.enqueue(str(batch))
            made += 1
    return made


@app.task(name="memory.summarise_together", queue=PROCESS, retry=RETRIES[PROCESS], timeout="3m")
async def summarise_together(batch_id: str, ctx: Context) -> dict[str, int]:
    """Ask once for the summaries of a batch, keep each with its flush, and begin their runs."""
    batch = await TABLES.load_batch(UUID(batch_id))
    try:
        found = await Summaries(ctx).of_many([(flush.id, blobs) for flush, blobs in batch])
    except Exception:
        if not ctx.last_try:
            raise
        # Each asks for itself.
        found = {}
    for flush, _ in batch:
        summary = found.get(flush.id)
        if summary is not None:
            await TABLES.save_summary(flush.id, summary)
        await start_run(flush, await priority_at(flush, "process"))
    return {"flushes": len(batch), "shared": sum(text is not None for text in found.values())}


def overdue(flush: Flush, now: datetime) -> bool:
    """Whether a flush has waited for others for so long that something went wrong."""
    return now - flush.created_at > settings().batch_window + timedelta(minutes=2)
