"""The batch store port on PostgreSQL: scatter and aggregate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.batch import (
    MAX_SETTLE_SLICES,
    SETTLE_ITEMS,
    BatchOutcome,
    BatchState,
    ClosedBatch,
    NewBatch,
    Slice,
)
from headrace.model.errors import ConflictError, KeyHeldError, StoreUnavailableError
from headrace.model.ids import uuid7s
from headrace.model.job import JobSpec
from headrace.model.session import LeaderTerm
from headrace.stores.postgres import rounds
from headrace.stores.postgres.database import Database, Row, Transaction
from headrace.stores.postgres.faults import lock_timed_out
from headrace.stores.postgres.intake import spec_values
from headrace.stores.postgres.rounds import no_batch
from headrace.stores.postgres.rows import HEAD_STARTS
from headrace.stores.postgres.terms import fetch_under, term_values


class PostgresBatchStore:
    """Durable batches. Workers never write a batch row; closing is tried after a completion has committed.

    `hot` has connections with pinned plans: closing is tried after every acknowledgement.
    """

    def __init__(self, database: Database, hot: Database) -> None:
        self._database, self._hot = database, hot

    async def create_batch(self, batch: NewBatch, args: Sequence[str] | None) -> UUID:
        """Create a batch and return its id, or the id of the batch that has its key."""
        values = _batch_values(batch, args)
        empty = args is not None and not args
        try:
            created = await (self._create_closed(values) if empty else self._database.fetch("create_batch", **values))
        except StoreUnavailableError as error:
            if batch.key is None or not lock_timed_out(error.__cause__):
                raise
            raise KeyHeldError(
                f"The key {batch.key!r} of a batch is held by another transaction, which did not end within the lock "
                "timeout; nothing was inserted. Commit or roll back that transaction, then submit the same again."
            ) from error
        return batch.id if created else await self._find_equal(batch, args)

    async def _create_closed(self, values: dict[str, Any]) -> list[Row]:
        """Create a batch without items, and close it in the same transaction."""

        async def work(tx: Transaction) -> list[Row]:
            created = await tx.fetch("create_batch", **values)
            await tx.fetch("close_batches", **_to_close([row["id"] for row in created]))
            return created

        return await self._database.run(work)

    async def _find_equal(self, batch: NewBatch, args: Sequence[str] | None) -> UUID:
        """Return the batch that was stored before under this key or id; raise ConflictError for another body."""
        if batch.key is None:
            row = await self._database.fetch_one("find_batch_hash", id=batch.id)
        else:
            row = await self._database.fetch_one("find_batch_key", scope=_scope(batch.spec.task), key=batch.key)
        if row is None:  # pruned in this moment: the key is free
            return await self.create_batch(batch, args)
        if row["body_hash"] != batch.body_hash:
            raise ConflictError(
                f"The batch {row['id']} of task {batch.spec.task!r} was submitted before under the key {batch.key!r} "
                "with other items or options. Use a new key, or send the first items again."
            )
        return UUID(str(row["id"]))

    async def append_slice(self, part: Slice) -> bool:
        """Append items to an open batch; return False when an equal slice is there already."""
        values = {"batch_id": part.batch_id, "first": part.first, "hash": part.hash, "args": list(part.args)}
        ids = uuid7s(len(part.args))
        while not await self._database.fetch("append_items", ids=ids, head_starts=HEAD_STARTS, **values):
            found = await self._database.fetch_one("find_slice", batch_id=part.batch_id, first=part.first)
            if found is None:
                raise no_batch(part.batch_id)
            if found["hash"] is not None:
                _check_slice(part, found)
                return False
            if found["state"] != BatchState.ABANDONED:
                raise _refused(part, found["state"])
            await self._database.fetch("continue_batch", batch_id=part.batch_id)
        return True

    async def seal_batch(self, batch_id: UUID, *, total: int, key: str | None = None) -> None:
        """Declare the total. Raises ConflictError when it differs from what was appended or sealed before."""
        await self._database.run(lambda tx: rounds.seal_batch(tx, batch_id, total, key))

    async def reopen_batch(self, batch_id: UUID, *, key: str) -> int:
        """Open a new round for more items and return the first ordinal to append at."""
        return await self._database.run(lambda tx: rounds.reopen_batch(tx, batch_id, key))

    async def retry_failed(self, batch_id: UUID) -> int:
        """Open a new round of a closed batch with copies of its failed items; return how many."""
        return await self._database.run(lambda tx: rounds.retry_failed(tx, batch_id))

    async def close_batches(self, batch_ids: Sequence[UUID]) -> list[ClosedBatch]:
        """Enforce close policies and close those of `batch_ids` that are sealed and done; return those closed."""
        closed, stopped = await self._close(batch_ids)
        for batch_id in stopped:
            await self._settle(batch_id, "settle_cancelled", limit=SETTLE_ITEMS)
        # Where nothing ran, settling ended the last of them.
        return closed + (await self._close(stopped))[0]

    async def _close(self, batch_ids: Sequence[UUID]) -> tuple[list[ClosedBatch], list[UUID]]:
        """Return the batches that were closed, and those that are being cancelled from now on."""
        rows = await self._hot.fetch("close_batches", **_to_close(batch_ids)) if batch_ids else []
        closed = [row for row in rows if row["outcome"] is not None]
        stopped = [row["id"] for row in rows if row["outcome"] is None]
        return [ClosedBatch(row["id"], BatchOutcome(row["outcome"]), row["callback_queue"]) for row in closed], stopped

    async def _settle(self, batch_id: UUID, name: str, *, limit: int, term: LeaderTerm | None = None) -> None:
        """Settle a batch being cancelled, paused or resumed by a statement, slice by slice, up to a bound."""
        for _ in range(MAX_SETTLE_SLICES):
            settled = await fetch_under(self._database, term, name, batch_id=batch_id, limit=limit)
            if len(settled) < limit:
                return

    async def cancel_batch(self, batch_id: UUID) -> None:
        """Start cancelling: nothing of the batch is claimed any more. A closed batch is left as it is."""
        await self._database.run(lambda tx: rounds.cancel_batch(tx, batch_id))

    async def settle_cancelled(self, batch_id: UUID, *, limit: int) -> int:
        """Cancel up to `limit` unstarted jobs of a batch being cancelled and ask its running ones to stop."""
        settled = await self._database.fetch("settle_cancelled", batch_id=batch_id, limit=limit)
        if not settled and await self._database.fetch_one("get_batch", batch_id=batch_id) is None:
            raise no_batch(batch_id)
        return len(settled)

    async def pause_batch(self, batch_id: UUID, *, reason: str | None = None) -> None:
        """Start nothing more of a batch until it is resumed; a second call replaces the reason."""
        await self._database.run(lambda tx: rounds.pause_batch(tx, batch_id, reason))

    async def resume_batch(self, batch_id: UUID) -> None:
        """End a pause; nothing happens to a batch that is not paused."""
        await self._database.run(lambda tx: rounds.resume_batch(tx, batch_id))

    async def settle_paused(self, batch_id: UUID, *, limit: int) -> int:
        """Hold up to `limit` ready jobs of a paused batch, or let go of so many that were held of one that is not."""
        batch = await self._database.fetch_one("get_batch", batch_id=batch_id)
        if batch is None:
            raise no_batch(batch_id)
        name = "let_go_jobs" if batch["paused_at"] is None else "hold_jobs"
        return len(await self._database.fetch(name, batch_id=batch_id, limit=limit))

    async def sweep_batches(self, *, term: LeaderTerm, seal_timeout: timedelta, limit: int) -> list[ClosedBatch]:
        """The safety net, for the leader: settle, close what is done, abandon what is idle; return those closed."""
        leader = term_values(term)
        await self._sweep_paused(term, limit)
        ids = [row["id"] for row in await self._database.fetch("find_unclosed", **leader)]
        closed = await self.close_batches(ids)
        # Closing may have begun to cancel some; what it closed is not found again.
        for row in await self._database.fetch("find_unclosed", **leader):
            if row["state"] == BatchState.CANCELLING:
                await self._settle(row["id"], "settle_cancelled", limit=limit, term=term)
                closed += await self.close_batches([row["id"]])
        await self._database.fetch("abandon_batches", seal_timeout=seal_timeout, **leader)
        return closed

    async def _sweep_paused(self, term: LeaderTerm, limit: int) -> None:
        """Finish pauses and resumes, and hold or let go of what a statement missed that began before them."""
        for row in await self._database.fetch("find_paused", **term_values(term)):
            await self._settle(row["id"], "hold_jobs" if row["paused"] else "let_go_jobs", limit=limit, term=term)


def _scope(task: str) -> str:
    return f"batch:{task}"


def _batch_values(batch: NewBatch, args: Sequence[str] | None) -> dict[str, Any]:
    return {
        **spec_values(batch.spec),
        "id": batch.id,
        "scope": _scope(batch.spec.task),
        "key": batch.key,
        "body_hash": batch.body_hash,
        "max_failed": batch.policy.max_failed,
        "on_close": _encode_spec(batch.on_close, batch.on_close_more),
        "gated": sorted(
            {spec.queue for spec in (batch.spec, batch.on_close) if spec is not None and spec.gate is not None}
        ),
        "run_at": batch.run_at,
        "sealed": args is not None,
        # They ascend with the ordinals, so that equal items are claimed in order.
        "ids": uuid7s(len(args or ())),
        "args": args or (),
    }


def _encode_spec(spec: JobSpec | None, more: str) -> str | None:
    """Return the callback of a batch as it is stored; `more` is the JSON text of its second argument."""
    if spec is None:
        return None
    timeout = None if spec.timeout is None else f"{spec.timeout.total_seconds()} seconds"
    gate = {"gate": None, "lane": spec.gate.text if spec.gate is not None else None}
    return json.dumps({**asdict(spec), **gate, "timeout": timeout, "more": more or None})


def _to_close(batch_ids: Sequence[UUID]) -> dict[str, Any]:
    ids = sorted(set(batch_ids))
    return {"ids": ids, "callback_ids": uuid7s(len(ids)), "head_starts": HEAD_STARTS}


def _check_slice(part: Slice, found: Any) -> None:
    if (found["count"], found["hash"]) != (len(part.args), part.hash):
        raise ConflictError(f"The items from ordinal {part.first} were appended before with other contents.")


def _refused(part: Slice, state: str) -> ConflictError:
    if state == BatchState.OPEN:
        return ConflictError(f"Some of the items from ordinal {part.first} were appended before in another slice.")
    return ConflictError(f"The batch is {state}: it takes no further items. Open a new round for them.")
