"""Reading each finished item of a batch once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from uuid import UUID

from headrace.model.batch import BatchItem, ItemPage
from headrace.ports.inspect_batches import InspectBatches


class ItemReader:
    """Reads each finished item once, however often it looks.

    Items recorded while older writes are still open are returned before the cursor can pass them, so they stay in
    `_seen` until it does, and the limit grows with it: a long transaction elsewhere delays nothing.
    """

    def __init__(self, inspect: InspectBatches, batch_id: UUID, cursor: str, *, page: int) -> None:
        self._inspect = inspect
        self._batch_id = batch_id
        self._cursor = cursor
        self._page = page
        self._seen: set[UUID] = set()

    async def new_items(self) -> AsyncGenerator[list[BatchItem], None]:
        """Yield what is there and was not read before, page by page; a page that is not done with comes again."""
        while True:
            limit = self._page + len(self._seen)
            page = await self._inspect.read_items(self._batch_id, cursor=self._cursor, limit=limit)
            fresh = [item for item in page.items if item.job_id not in self._seen]
            if fresh:
                yield fresh
            if len(page.items) < limit:
                self._seen.clear()
            self._seen.difference_update(item.job_id for item in page.items)
            self._seen.update(self._to_come_again(page))
            self._cursor = page.cursor
            if len(page.items) < limit:
                return

    def _to_come_again(self, page: ItemPage) -> list[UUID]:
        """Return what lies behind the cursor of a page: the first item that has this cursor is the last it passed."""
        last = [item.job_id for item in page.items if item.cursor == page.cursor]
        return last if page.cursor == self._cursor else last[1:]
