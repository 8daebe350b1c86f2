"""Reading each finished item of a batch once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from headrace.model.batch import BatchItem
from headrace.ports.inspect_batches import InspectBatches


class ItemReader:
    """Reads each finished item once, however often it looks.

    Items recorded while older writes are still open are returned before the cursor can pass them, so they stay in
    `_seen`, and the limit grows with it: a long transaction elsewhere delays nothing.
    """

    def __init__(self, inspect: InspectBatches, batch_id: UUID, cursor: str, *, page: int) -> None:
        self._inspect = inspect
        self._batch_id = batch_id
        self._cursor = cursor
        self._page = page
        self._seen: set[UUID] = set()

    async def new_items(self) -> AsyncIterator[list[BatchItem]]:
        """Yield what is there and was not read before, page by page."""
        while True:
            limit = self._page + len(self._seen)
            page = await self._inspect.read_items(self._batch_id, cursor=self._cursor, limit=limit)
            fresh = [item for item in page.items if item.job_id not in self._seen]
            if len(page.items) < limit:
                self._seen.clear()
            self._seen.update(item.job_id for item in page.items)
            if fresh:
                yield fresh
            if page.cursor == self._cursor:
                return
            self._cursor = page.cursor
