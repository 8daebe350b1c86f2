"""Rounds of a batch: sealing, reopening, retrying, cancelling, pausing. Each holds the batch row first.

Every function runs inside a transaction of its caller. Locks: final jobs before their batch, the batch before the
jobs inserted into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from headrace.model.batch import BatchState, former_total
from headrace.model.errors import ConflictError, NotFoundError
from headrace.model.ids import uuid7s
from headrace.stores.postgres.database import Row, Transaction
from headrace.stores.postgres.rows import HEAD_STARTS

_APPENDABLE = (BatchState.OPEN, BatchState.ABANDONED)


def no_batch(batch_id: UUID) -> NotFoundError:
    """Return the error for a batch that does not exist."""
    return NotFoundError(f"There is no batch {batch_id}. `headrace batch list` shows those that exist.")


async def seal_batch(tx: Transaction, batch_id: UUID, total: int, key: str | None) -> None:
    """Seal the open round of a batch, or check that the round named ended with this total."""
    batch = await _lock(tx, batch_id)
    firsts = await _rounds(tx, batch_id)
    known = batch["total"] if batch["total"] is not None else await _appended(tx, batch_id)
    former = former_total(firsts, total=total, known=known, key=key)
    expected = known if former is None else former
    if total != expected:
        raise ConflictError(f"The batch holds {expected} items, not {total}. Append what is missing, then seal it.")
    if former is None:
        await tx.fetch("seal_batch", batch_id=batch_id, total=total)


async def reopen_batch(tx: Transaction, batch_id: UUID, key: str) -> int:
    """Open a round named `key` and return its first ordinal; one that was opened before is left as it is."""
    batch = await _lock(tx, batch_id)
    known = await _rounds(tx, batch_id)
    if key in known:
        return known[key]
    if batch["state"] in (*_APPENDABLE, BatchState.CANCELLING):
        raise ConflictError(f"The batch is {batch['state']}: seal it, or wait until it is closed, and try again.")
    first = await _appended(tx, batch_id)
    await tx.fetch("open_round", batch_id=batch_id, state=BatchState.OPEN)
    await tx.fetch("note_round", batch_id=batch_id, key=key, first=first)
    return first


async def retry_failed(tx: Transaction, batch_id: UUID) -> int:
    """Open a round of a closed batch with copies of its failed items."""
    batch = await _lock(tx, batch_id)
    if batch["state"] != BatchState.CLOSED:
        raise ConflictError(f"The batch is {batch['state']}: its failed items can be retried once it is closed.")
    failed = [row["id"] for row in await tx.fetch("find_failed_items", batch_id=batch_id)]
    if failed:
        await _open_retry_round(tx, batch_id)
        await _insert_retries(tx, failed)
    return len(failed)


async def cancel_batch(tx: Transaction, batch_id: UUID) -> None:
    """Start cancelling; what was appended so far becomes the total."""
    await _lock(tx, batch_id)
    await tx.fetch("cancel_batch", batch_id=batch_id, appended=await _appended(tx, batch_id))


async def pause_batch(tx: Transaction, batch_id: UUID, reason: str | None) -> None:
    """Mark a batch paused, or give the pause another reason."""
    batch = await _lock(tx, batch_id)
    if batch["state"] in (BatchState.CLOSED, BatchState.CANCELLING):
        raise ConflictError(f"The batch is {batch['state']}: nothing of it is left to start, so it cannot be paused.")
    await tx.fetch("pause_batch", batch_id=batch_id, reason=reason)


async def resume_batch(tx: Transaction, batch_id: UUID) -> None:
    """Mark a batch paused no more."""
    await _lock(tx, batch_id)
    await tx.fetch("resume_batch", batch_id=batch_id)


async def retry_jobs(
    tx: Transaction, originals: Sequence[Row], texts: Mapping[UUID, str | None] | None = None
) -> tuple[dict[UUID, UUID], dict[UUID, UUID]]:
    """Insert a copy of each of `originals` that has none yet; return the retries found and those made, by original.

    `originals` are rows of history that the caller holds, with id and batch_id. A closed batch opens a new round; a
    job of a batch being cancelled is left out. `texts` are arguments in place of a job's own.
    """
    batches = {row["batch_id"] for row in originals} - {None}
    states = {batch_id: (await _lock(tx, batch_id))["state"] for batch_id in sorted(batches)}
    # Only now: while the batches were waited for, others may have retried the same jobs.
    rows = await tx.fetch("find_retries", job_ids=[row["id"] for row in originals])
    found = {row["retry_of"]: row["id"] for row in rows}
    wanted = [
        row for row in originals if row["id"] not in found and states.get(row["batch_id"]) != BatchState.CANCELLING
    ]
    for batch_id in sorted({row["batch_id"] for row in wanted} - {None}):
        if states[batch_id] == BatchState.CLOSED:
            await _open_retry_round(tx, batch_id)
        else:
            await tx.fetch("note_change", batch_id=batch_id)
    return found, await _insert_retries(tx, [row["id"] for row in wanted], texts)


async def _open_retry_round(tx: Transaction, batch_id: UUID) -> None:
    await tx.fetch("open_round", batch_id=batch_id, state=BatchState.SEALED)


async def _insert_retries(
    tx: Transaction, originals: Sequence[UUID], texts: Mapping[UUID, str | None] | None = None
) -> dict[UUID, UUID]:
    # Ids that ascend with the originals, so that retries are claimed in their order.
    copies = dict(zip(originals, uuid7s(len(originals)), strict=True))
    if copies:
        changed = [(texts or {}).get(original) for original in originals]
        await tx.fetch(
            "insert_retries", ids=list(copies.values()), originals=originals, args=changed, head_starts=HEAD_STARTS
        )
    return copies


async def _rounds(tx: Transaction, batch_id: UUID) -> dict[str, int]:
    """Return the first ordinal of each named round, in their order."""
    return {row["key"]: row["first"] for row in await tx.fetch("find_rounds", batch_id=batch_id)}


async def _lock(tx: Transaction, batch_id: UUID) -> Row:
    batch = await tx.fetch_one("lock_batch", batch_id=batch_id)
    if batch is None:
        raise no_batch(batch_id)
    return batch


async def _appended(tx: Transaction, batch_id: UUID) -> int:
    row = await tx.fetch_one("count_appended", batch_id=batch_id)
    assert row is not None
    return int(row["appended"])
