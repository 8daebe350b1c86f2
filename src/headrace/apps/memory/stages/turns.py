"""Whose turn it is: the first unfinished flush of each user is begun, by itself or together with those of others.

Small buffers that nobody waits for are summarised several users in one call of the model. Such a call brings summaries
and nothing else. It is given nobody's profile, so that what one user is known for cannot come near another's; and where
a part of its answer is missing or wrong, that flush asks for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from headrace import Context
from headrace.apps.memory.data.flushes import Flush, FlushState
from headrace.apps.memory.means import TABLES, language_for, settings
from headrace.apps.memory.opening import BUFFER, PROCESS, RETRIES, app
from headrace.apps.memory.rules import BREAKERS, Candidate, batch_size, group_flushes, priority_of, score
from headrace.apps.memory.stages.endings import is_last
from headrace.apps.memory.stages.runs import may_share, priority_at, small_tokens, start_run
from headrace.apps.memory.stages.summaries import Summaries
from headrace.apps.memory.tables.values import Sharing, WaitingFlush

#: Flushes that one look groups at most.
MOST_AT_ONCE = 500
#: Held while this process groups flushes: a burst of checks need not do it all at once.
_GATHERING = asyncio.Lock()


@dataclass(frozen=True, slots=True)
class Started:
    """What is unfinished of a user, and the priority of the first of it; None: nothing is."""

    unfinished: Sequence[Flush]
    priority: int | None


async def start_next(user_id: str) -> Started:
    """Begin the first unfinished flush of a user, once, or see to it that it waits for others."""
    unfinished = await TABLES.unfinished(user_id)
    if not unfinished:
        return Started((), None)
    first = unfinished[0]
    priority = await priority_at(first, "process")
    if first.state is FlushState.WAITING:
        sharing = await TABLES.sharing_of(first.id) if may_share(first) else Sharing.READY
        if sharing is Sharing.OPEN:
            await wait_for_others()
        elif sharing is Sharing.READY:
            await start_run(first, priority)
    return Started(unfinished, priority)


async def wait_for_others() -> None:
    """See to it that what waits is grouped soon: at the end of the window, or now if there is enough of it."""
    window = settings().batch_window.total_seconds()
    waiting = await TABLES.waiting_unbatched(settings().max_batch_size, most_tokens=small_tokens())
    if len(waiting) >= settings().max_batch_size or not window:
        await gather()
        return
    number = int(datetime.now(UTC).timestamp() // window)
    at = datetime.fromtimestamp((number + 1) * window, UTC)
    await gather_flushes.options(key=f"window/{number}", run_at=at).enqueue()


@app.task(name="memory.gather_flushes", queue=BUFFER, retry=RETRIES[BUFFER], breaker=BREAKERS["buffer"], timeout="1m")
async def gather_flushes() -> dict[str, int]:
    """Group what waits for others."""
    return {"batches": await gather()}


async def gather(waited: timedelta = timedelta()) -> int:
    """Make batches of what waits, and enqueue their calls; return how many. Two who do it at once share nothing.

    `waited`: of what was made so long ago.
    """
    if _GATHERING.locked():
        return 0  # the one that goes on, or the next window's, takes what waits
    async with _GATHERING:
        waiting = await TABLES.waiting_unbatched(MOST_AT_ONCE, most_tokens=small_tokens(), waited=waited)
        found = [_candidate(one) for one in waiting if may_share(one.flush)]
        size = batch_size(settings().batch_mode, await TABLES.pace(), most=settings().max_batch_size)
        groups = group_flushes(found, size, most=settings().max_batch_size)
        scores = {one.flush_id: one.score for one in found}
        return sum([await _make_batch(group, max(scores[one] for one in group)) for group in groups])


async def _make_batch(group: Sequence[UUID], urgency: float) -> bool:
    """Make a batch of those that are still free, and its job, in one transaction."""
    async with app.database() as connection, app.transaction(connection):
        batch = await TABLES.on(connection).make_batch(group)
        if batch is not None:
            options = {"priority": priority_of(urgency), "key": str(batch), "connection": connection}
            await summarise_together.options(**options).enqueue(str(batch))
    return batch is not None


async def end_lost_batch(batch_id: UUID) -> bool:
    """Let the flushes of a batch ask for themselves if its job has ended without it; it may as well wait for a quota.

    Where its job is not known any more, it is made again.
    """
    job = await summarise_together.options(key=str(batch_id)).enqueue(str(batch_id))
    if not (await job.status()).final:
        return False
    for user_id in await TABLES.end_batch(batch_id):
        await start_next(user_id)
    return True


def _candidate(one: WaitingFlush) -> Candidate:
    flush, age = one.flush, datetime.now(UTC) - one.flush.created_at
    urgency = score(one.level, age, "process", flush.round)
    return Candidate(
        flush.id,
        flush.user_id,
        flush.tokens,
        one.language,
        urgency,
        len(flush.blob_ids),
        flush.number,
        flush.created_at,
    )


@app.task(
    name="memory.summarise_together", queue=PROCESS, retry=RETRIES[PROCESS], breaker=BREAKERS["process"], timeout="3m"
)
async def summarise_together(ctx: Context, batch_id: str) -> dict[str, int]:
    """Ask once for the summaries of a batch, keep each with its flush, and begin their runs."""
    batch = await TABLES.load_batch(UUID(batch_id))
    users = await TABLES.users([flush.user_id for flush, _ in batch])
    languages = {flush.id: language_for(users.get(flush.user_id)) for flush, _ in batch}
    summaries = Summaries(ctx)
    try:
        found = await summaries.of_many([(flush.id, blobs) for flush, blobs in batch], languages)
    except Exception as error:
        if not is_last(error, ctx, PROCESS):
            raise
        # Each asks for itself.
        found = {}
    for flush, summary in found.items():
        if summary is not None:
            await TABLES.save_summary(flush, summary)
    for user_id in await TABLES.end_batch(UUID(batch_id), called_ms=summaries.called_ms):
        await start_next(user_id)
    return {"flushes": len(batch), "shared": sum(text is not None for text in found.values())}
