"""Batches in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from headrace.model.batch import ClosedBatch, NewBatch, Slice
from headrace.model.session import LeaderTerm
from headrace.stores.memory import batches, closing, pausing
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.state import State, atomic


class MemoryBatchStore:
    """`ports.batch_store.BatchStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    @atomic
    async def create_batch(self, batch: NewBatch, args: Sequence[str] | None) -> UUID:
        """Create a batch, and close it at once when it is sealed without items."""
        known = len(self._state.batches)
        stored = batches.create_batch(self._state, batch, args)
        if args is not None and not args and len(self._state.batches) > known:
            closing.close_batches(self._state, [stored])
        return stored.new.id

    @atomic
    async def append_slice(self, part: Slice) -> bool:
        """Append items to an open batch."""
        return batches.append_slice(self._state, part)

    @atomic
    async def seal_batch(self, batch_id: UUID, *, total: int, key: str | None = None) -> None:
        """Declare the total."""
        batches.seal_batch(self._state, batch_id, total, key)

    @atomic
    async def reopen_batch(self, batch_id: UUID, *, key: str) -> int:
        """Open a new round for more items."""
        return batches.reopen_batch(self._state, batch_id, key)

    @atomic
    async def retry_failed(self, batch_id: UUID) -> int:
        """Open a new round with copies of the failed items."""
        return batches.retry_failed(self._state, batch_id)

    @atomic
    async def close_batches(self, batch_ids: Sequence[UUID]) -> list[ClosedBatch]:
        """Enforce policies and close what is done; ids of batches that are gone are passed over."""
        known = (self._state.batches.get(batch_id) for batch_id in batch_ids)
        return closing.close_batches(self._state, [batch for batch in known if batch is not None])

    @atomic
    async def cancel_batch(self, batch_id: UUID) -> None:
        """Start cancelling."""
        closing.cancel_batch(self._state, batch_id)

    @atomic
    async def settle_cancelled(self, batch_id: UUID, *, limit: int) -> int:
        """Cancel unstarted jobs and ask running ones to stop."""
        return closing.settle(self._state, batches.find_batch(self._state, batch_id), limit)

    @atomic
    async def pause_batch(self, batch_id: UUID, *, reason: str | None = None) -> None:
        """Start nothing more of a batch."""
        pausing.pause_batch(self._state, batch_id, reason)

    @atomic
    async def resume_batch(self, batch_id: UUID) -> None:
        """End a pause."""
        pausing.end_pause(batches.find_batch(self._state, batch_id))

    @atomic
    async def settle_paused(self, batch_id: UUID, *, limit: int) -> int:
        """Hold ready jobs, or let go of held ones."""
        return pausing.settle(self._state, batches.find_batch(self._state, batch_id), limit)

    @atomic
    async def sweep_batches(self, *, term: LeaderTerm, seal_timeout: timedelta, limit: int) -> list[ClosedBatch]:
        """Settle, close and abandon; nothing under a term that is over."""
        if not leads(self._state, term):
            return []
        pausing.sweep(self._state, limit)
        return closing.sweep_batches(self._state, seal_timeout=seal_timeout, limit=limit)
