"""The batch store port: scatter and aggregate.

Workers never write a batch row; closing is a guarded update tried after a completion has committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from headrace.model.batch import ClosedBatch, NewBatch, Slice
from headrace.model.session import LeaderTerm


class BatchStore(Protocol):
    """Durable batches. A batch that does not exist raises NotFoundError."""

    async def create_batch(self, batch: NewBatch, args: Sequence[str] | None) -> UUID:
        """Create a batch and return its id, or the id of the batch that has its key.

        With `args` the N jobs are inserted and the batch is sealed in the same transaction (and closed at once
        when there are none); without, it stays open. The same key with another body raises ConflictError; a key that
        another open transaction is inserting raises KeyHeldError after a bounded wait. Safe to call again with the
        same batch after an answer was lost.
        """
        ...

    async def append_slice(self, part: Slice) -> bool:
        """Append items to an open batch; return False when an equal slice is there already.

        Raises ConflictError for a slice of the same ordinals with another hash, and for a batch that is neither
        open nor abandoned and does not hold the slice. Appending to an abandoned batch opens it again.
        """
        ...

    async def seal_batch(self, batch_id: UUID, *, total: int, key: str | None = None) -> None:
        """Declare the total. Raises ConflictError when it differs from what was appended or sealed before.

        `key` names the round that `reopen_batch` opened; None is the first round, or whichever is open. A round that
        was sealed before stays as it is, also while a later one is open.
        """
        ...

    async def reopen_batch(self, batch_id: UUID, *, key: str) -> int:
        """Open a new round for more items and return the first ordinal to append at.

        `key` names the round: the same key returns the same ordinal as long as the batch exists, whatever rounds
        followed; appending its slices and sealing it again then changes nothing. Raises ConflictError while another
        round is open or the batch is being cancelled.
        """
        ...

    async def retry_failed(self, batch_id: UUID) -> int:
        """Open a new round of a closed batch with copies of its failed items; return how many.

        Raises ConflictError when the batch is not closed. With no failures nothing changes. A store may copy many items
        in parts: the round is not closed before it is whole, and one that was cut short leaves the others failed.
        """
        ...

    async def close_batches(self, batch_ids: Sequence[UUID]) -> list[ClosedBatch]:
        """Enforce close policies and close those of `batch_ids` that are sealed and done; return those closed.

        A batch whose policy is exceeded is being cancelled from then on: this call settles it (up to 20,000 items, the
        rest is left to the sweep) and closes it if nothing of it runs. The callback is inserted in the same statement
        as the close, so once per round. Call after the completion's commit.
        """
        ...

    async def cancel_batch(self, batch_id: UUID) -> None:
        """Start cancelling: nothing of the batch is claimed any more. A closed batch is left as it is."""
        ...

    async def settle_cancelled(self, batch_id: UUID, *, limit: int) -> int:
        """Cancel up to `limit` unstarted jobs of a batch being cancelled and ask its running ones to stop."""
        ...

    async def pause_batch(self, batch_id: UUID, *, reason: str | None = None) -> None:
        """Start nothing more of a batch until it is resumed; a second call replaces the reason.

        What becomes ready from then on is held at once: appended items, retries, jobs that were rescued, woken or whose
        time has come. What was ready before is held by `settle_paused`, and until then it may start. A pause
        lasts when the batch closes, and ends when it is cancelled. Raises ConflictError for a closed batch, which has
        nothing to start, and for one being cancelled.
        """
        ...

    async def resume_batch(self, batch_id: UUID) -> None:
        """End a pause; nothing happens to a batch that is not paused. `settle_paused` lets go of what was held."""
        ...

    async def settle_paused(self, batch_id: UUID, *, limit: int) -> int:
        """Hold up to `limit` ready jobs of a paused batch, or let go of so many that were held of one that is not.

        Returns how many; fewer than `limit`: there were no more. A held job is parked and keeps its place in the claim
        order; the first of that order are let go first. What a store may miss, since it was being written in this very
        moment, the sweep finds.
        """
        ...

    async def sweep_batches(self, *, term: LeaderTerm, seal_timeout: timedelta, limit: int) -> list[ClosedBatch]:
        """The safety net, for the leader: settle, close what is done, abandon what is idle; return those closed.

        Batches being cancelled, paused or resumed are settled in slices of `limit` items, at most 20 of each batch in
        one call. Under a term that is over nothing happens.
        """
        ...
