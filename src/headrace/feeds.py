"""Feeds: ordered logs that people follow, such as what happens to one request."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headrace.model.feed import MAX_ENTRY_BYTES, Entry, NewEntry, check_entry_type, check_feed
from headrace.model.names import check_key
from headrace.model.numbers import check_whole
from headrace.model.payload import encode_json

if TYPE_CHECKING:
    from headrace.app import App

#: Entries of one read at most.
MOST_READ = 1_000


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """An entry of a feed."""

    #: From 1, without gaps until the oldest are pruned.
    seq: int
    type: str
    data: Any
    key: str | None
    #: When it was appended, by the store's clock.
    time: datetime


class Feed:
    """One durable, ordered log: `append` to it, `read` it, `follow` it. Entries are kept for `[recovery] keep_feeds`.

    >>> from headrace import App
    >>> app = App("memory://")
    >>> async def main() -> None:
    ...     async with app:
    ...         feed = app.feed("orders")
    ...         await feed.append("paid", {"order": 7}, key="paid/7")
    ...         print(await feed.append("paid", {"order": 7}, key="paid/7"))
    ...         async for entry in feed.follow():
    ...             print(entry.seq, entry.type, entry.data)
    ...             break
    >>> import asyncio; asyncio.run(main())
    1
    1 paid {'order': 7}
    """

    def __init__(self, app: App, name: str) -> None:
        self._app = app
        self.name = check_feed(name)

    def __repr__(self) -> str:
        return f"Feed({self.name!r})"

    async def append(self, type: str, data: Any = None, *, key: str | None = None) -> int:
        """Append an entry and return its number, once it is stored.

        `type`: a name such as "item"; `data`: any JSON up to 64 KiB. With a `key` the feed has the entry once: appended
        again it changes nothing and its first number is returned. Without one, an append that raised may have happened.
        Raises InvalidInputError, PayloadTooLargeError, StoreUnavailableError.
        """
        text = encode_json(data, field="data", most=MAX_ENTRY_BYTES)
        entry = NewEntry(check_entry_type(type), text, None if key is None else check_key("key", key))
        return await self._app.runtime.feeds.append(self.name, entry)

    async def read(self, after: int = 0, limit: int = 100) -> list[FeedEntry]:
        """Return up to `limit` entries, at most 1,000, with numbers above `after`, in order."""
        check_whole("after", after, least=0)
        check_whole("limit", limit, most=MOST_READ)
        found = await self._app.runtime.feeds.read(self.name, after=after, limit=limit)
        return [entry_of(entry) for entry in found]

    async def end(self) -> int:
        """Return the number of the last entry, 0 of a feed without any."""
        return await self._app.runtime.feeds.end(self.name)

    async def follow(self, after: int = 0) -> AsyncGenerator[FeedEntry, None]:
        """Yield the entries with numbers above `after` as they come, each once and in order, without end.

        While the store is away it waits. All followers of a feed in one process share its reads.
        """
        check_whole("after", after, least=0)
        async with aclosing(self._app.runtime.feeds.follow(self.name, after=after)) as entries:
            async for entry in entries:
                yield entry_of(entry)


def entry_of(entry: Entry) -> FeedEntry:
    """Return an entry with its data as values."""
    return FeedEntry(entry.seq, entry.type, json.loads(entry.data), entry.key, entry.time)
