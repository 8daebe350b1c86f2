"""The part of the inspect port that reads batches."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from headrace.model.batch import BatchView, ItemPage, Progress
from headrace.model.job import Made


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
