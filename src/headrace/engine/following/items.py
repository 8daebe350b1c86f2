"""Reading each finished item of a batch once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from uuid import UUID

from headrace.model.batch import BatchItem
from headrace.ports.inspect_batches import InspectBatches


class ItemReader:
    """Reads each finished item once, however often it looks."""

    def __init__(self, inspect: InspectBatches, batch_id: UUID, cursor: str, *, page: int) -> None:
        self._inspect = inspect
        self._batch_id = batch_id
        self._cursor = cursor
        self._page = page

    async def new_items(self) -> AsyncGenerator[list[BatchItem], None]:
        """Yield what is there and was not read before, page by page; a page that is not done with comes again."""
        while True:
            page = await self._inspect.read_items(self._batch_id, cursor=self._cursor, limit=self._page)
            if page.items:
                yield list(page.items)
            self._cursor = page.cursor
            if len(page.items) < self._page:
                return
