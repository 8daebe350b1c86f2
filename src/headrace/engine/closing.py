"""Closing batches after a commit, and settling what a close policy or a cancel has stopped, or a pause holds.

The aggregator is the safety net under all of it.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from headrace.model.batch import ClosedBatch
from headrace.ports.stores import Stores

#: Items that are cancelled in one transaction.
SETTLE_LIMIT = 1_000


async def close_batches(stores: Stores, batch_ids: Collection[UUID]) -> frozenset[UUID]:
    """Close those that are done, tell who waits for it, and return them."""
    closed = await stores.batches.close_batches(sorted(batch_ids)) if batch_ids else []
    announce_closed(stores, closed)
    return frozenset(batch.id for batch in closed)


async def settle_batch(stores: Stores, batch_id: UUID) -> None:
    """Cancel what has not started of a batch being cancelled, slice by slice, and close it if nothing runs.

    Nothing happens to a batch that is not being cancelled.
    """
    settled, last = 0, SETTLE_LIMIT
    while last == SETTLE_LIMIT:
        last = await stores.batches.settle_cancelled(batch_id, limit=SETTLE_LIMIT)
        settled += last
    if settled:
        await close_batches(stores, [batch_id])


async def settle_pause(stores: Stores, batch_id: UUID, *, queue: str | None = None) -> None:
    """Hold what is ready of a paused batch, or let go of what was held of another, slice by slice.

    `queue` is told of what was let go.
    """
    last = SETTLE_LIMIT
    while last == SETTLE_LIMIT:
        last = await stores.batches.settle_paused(batch_id, limit=SETTLE_LIMIT)
        if last and queue is not None:
            stores.notifier.hint(f"queue:{queue}")


def announce_closed(stores: Stores, closed: list[ClosedBatch]) -> None:
    """Send the hints that closed batches deserve: their waiters, and the queues of their callbacks."""
    for batch in closed:
        stores.notifier.hint("done")
        if batch.callback_queue is not None:
            stores.notifier.hint(f"queue:{batch.callback_queue}")
