"""The part of the inspect port that reads batches."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from headrace.model.batch import BatchView, ItemPage, Progress
from headrace.model.dead_letter import DeadLetter
from headrace.model.item_states import BatchStates
from headrace.model.job import JobView, Made


class InspectBatches(Protocol):
    """Reads of batches and their items."""

    async def get_batch(self, batch_id: UUID) -> BatchView | None:
        """Return a batch."""
        ...

    async def find_batch(self, task: str, key: str) -> BatchView | None:
        """Return the batch that was submitted under `key` for `task`."""
        ...

    async def list_batches(self, *, before: Made | None = None, limit: int = 50) -> list[BatchView]:
        """Return batches, newest first, from those made before `before`."""
        ...

    async def batch_progress(self, batch_id: UUID) -> Progress:
        """Count a batch's items by state, in one grouped count. Raises NotFoundError."""
        ...

    async def read_items(self, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
        """Return finished items after `cursor` ("" for the start) in the order they were recorded.

        Fewer than `limit` are all that there are. Reading on from the returned cursor misses none and repeats none;
        from that of an item, those recorded while older writes were still open may be returned again. A malformed
        cursor raises InvalidInputError. A failed item that was retried is returned again with what its retry gave.
        """
        ...

    async def batch_args(self, batch_id: UUID) -> dict[int, str]:
        """Return the argument text of each item of a batch by ordinal; of a retried one, that of its newest try."""
        ...

    async def batch_states(self, batch_id: UUID, *, first: int, limit: int) -> BatchStates:
        """Return what the items of a batch are from ordinal `first` on, at most `limit` (up to 10,000) of them.

        An item that was retried is what its newest try is. It may be asked several times a second for each batch that
        somebody watches: PostgreSQL answers by indexes; Redis reads the whole batch, a part at a time. Raises
        NotFoundError, and InvalidInputError for a range that none can be.
        """
        ...

    async def item_jobs(self, batch_id: UUID, ordinal: int, *, limit: int) -> list[JobView]:
        """Return the tries of one item of a batch, the newest first, at most `limit`; none where the item is not there.

        For whoever looks at one item: a store may walk all of the batch for it.
        """
        ...

    async def batch_dead_letters(self, batch_id: UUID, *, limit: int) -> list[DeadLetter]:
        """Return items of a batch that failed and were not retried, the newest first, at most `limit` of them.

        Where there are more, a store may choose which. Raises NotFoundError.
        """
        ...
