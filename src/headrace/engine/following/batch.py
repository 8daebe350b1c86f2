"""The feed of a batch: its finished items as they finish, its rounds and pauses, and its end."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any
from uuid import UUID

from headrace.engine.feeds.hub import FeedHub
from headrace.engine.following.items import ItemReader
from headrace.engine.queries import item_document
from headrace.model.batch import BatchItem, BatchState, BatchView
from headrace.model.errors import NotFoundError
from headrace.model.feed import Entry, NewEntry
from headrace.model.payload import encode_json
from headrace.ports.inspect import Inspect

ITEM, ROUND, CLOSED = "item", "round", "closed"
PAUSED, RESUMED = "paused", "resumed"
#: Characters of a result or an error that stands in an entry; a longer one is left out.
MOST_RESULT = 16 << 10
#: Items of one read: each may have a result of 256 KiB. And entries that are looked through for the place to begin at.
PAGE, LAST_ENTRIES = 50, 50
#: Pages of one look: other feeds have their turn between.
MOST_PAGES = 10


def batch_feed(batch_id: UUID) -> str:
    """Return the name of the feed of a batch.

    >>> batch_feed(UUID(int=7))
    'batch:00000000-0000-0000-0000-000000000007'
    """
    return f"batch:{batch_id}"


class BatchGrower:
    """Lets the feed of one batch grow until the batch is closed."""

    def __init__(self, inspect: Inspect, hub: FeedHub, batch_id: UUID) -> None:
        self._inspect, self._hub, self._batch_id = inspect, hub, batch_id
        self._reader: ItemReader | None = None
        self._round = 1
        #: since when the batch was paused as the feed tells it
        self._paused: str | None = None
        self.over = self.behind = False

    async def look(self) -> bool:
        """Append what has finished; return whether that was something. Raises NotFoundError."""
        view = await self._inspect.get_batch(self._batch_id)
        if view is None:
            raise NotFoundError(f"no batch {self._batch_id}")
        reader = self._reader = self._reader or await self._begin(view)
        if self.over:
            return False
        grew = await self._tell_round(view)
        grew |= await self._tell_pause(view)
        # What is closed when it is looked at has no items that are not read now.
        grew |= await self._tell_items(reader)
        if view.state is BatchState.CLOSED and not self.behind:
            closed = await self._closed(view)
            now = await self._inspect.get_batch(self._batch_id)
            # Else failed items run again by now: what was counted is of no round.
            if now is not None and (now.state, now.round) == (view.state, view.round):
                await self._append(closed)
                self.over = True
        return grew

    async def _tell_round(self, view: BatchView) -> bool:
        begun = view.round > self._round
        if begun:
            await self._append(NewEntry(ROUND, encode_json({"round": view.round}, field="data"), f"round/{view.round}"))
            self._round = view.round
        return begun

    async def _tell_pause(self, view: BatchView) -> bool:
        """Append that the batch is paused, or that the pause of which the feed tells is over."""
        since, told = None if view.paused_at is None else view.paused_at.isoformat(), self._paused
        if since == told:
            return False
        if since is None:
            await self._append(NewEntry(RESUMED, "{}", f"resumed/{told}"))
        else:
            data = {"since": since, "reason": view.paused_reason}
            await self._append(NewEntry(PAUSED, encode_json(data, field="data"), f"paused/{since}"))
        self._paused = since
        return True

    async def _tell_items(self, reader: ItemReader) -> bool:
        """Append the items of some pages; `behind` says whether there are more."""
        told = 0
        async with aclosing(reader.new_items()) as pages:
            async for items in pages:
                self.behind = told == MOST_PAGES
                if self.behind:
                    break
                await self._append(*(_item_entry(item) for item in items))
                told += 1
            else:
                self.behind = False
        return told > 0

    async def _begin(self, view: BatchView) -> ItemReader:
        """Return a reader behind the last item that the feed has: what stands before that one is in the feed too.

        A feed that tells the end already is over: what was removed of it must not come behind that.
        """
        name = batch_feed(self._batch_id)
        end = await self._hub.end(name)
        last = await self._hub.read(name, after=max(end - LAST_ENTRIES, 0), limit=LAST_ENTRIES)
        self.over = view.state is BatchState.CLOSED and any(is_last(entry, view.round) for entry in last)
        pauses = [entry for entry in last if entry.type in (PAUSED, RESUMED)]
        if pauses and pauses[-1].type == PAUSED:
            self._paused = json.loads(pauses[-1].data)["since"]
        cursors = [json.loads(entry.data)["cursor"] for entry in last if entry.type == ITEM]
        return ItemReader(self._inspect, self._batch_id, cursors[-1] if cursors else "", page=PAGE)

    async def _closed(self, view: BatchView) -> NewEntry:
        counts = await self._inspect.batch_progress(view.id)
        data = {
            "round": view.round, "outcome": view.outcome, "total": counts.total, "succeeded": counts.succeeded,
            "failed": counts.failed, "cancelled": counts.cancelled,
        }  # fmt: skip
        return NewEntry(CLOSED, encode_json(data, field="data"), f"closed/{view.round}")

    async def _append(self, *entries: NewEntry) -> None:
        await self._hub.append_all(batch_feed(self._batch_id), entries)


def is_last(entry: Entry, round_number: int) -> bool:
    """Whether an entry says that a batch was closed in a round, or in a later one."""
    return entry.type == CLOSED and int(json.loads(entry.data)["round"]) >= round_number


def _item_entry(item: BatchItem) -> NewEntry:
    document = item_document(item)
    for name in ("result", "error"):
        if len(_text(document.get(name))) > MOST_RESULT:
            document |= {name: None, "left_out": True}
    return NewEntry(ITEM, _text(document), f"item/{item.job_id}")


def _text(value: Any) -> str:
    return encode_json(value, field="data", most=1 << 30)
