"""A feed store that counts what it is asked, may be away, and gives hints only where they are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.engine.feeds.hub import FeedHub
from headrace.model.errors import StoreUnavailableError
from headrace.model.feed import Entry, NewEntry
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores


class WatchedFeeds:
    """The feeds of a memory store; `open` holds appends back, `faults` are raised by the next calls."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.appends: list[int] = []
        self.reads = 0
        self.faults: list[Exception] = []
        self.open = asyncio.Event()
        self.open.set()

    async def append_entries(self, feed: str, entries: Sequence[NewEntry]) -> list[int]:
        """Append once the way is open; a fault comes after the entries were stored: their answer is lost."""
        await self.open.wait()
        self.appends.append(len(entries))
        numbers: list[int] = await self._inner.append_entries(feed, entries)
        self._fail()
        return numbers

    async def read_feed(self, feed: str, *, after: int, limit: int) -> list[Entry]:
        """Read, and count it."""
        self._fail()
        self.reads += 1
        found: list[Entry] = await self._inner.read_feed(feed, after=after, limit=limit)
        return found

    async def feed_end(self, feed: str) -> int:
        """Return the end."""
        self._fail()
        end: int = await self._inner.feed_end(feed)
        return end

    async def prune_feeds(self, **options: Any) -> int:
        """Prune."""
        pruned: int = await self._inner.prune_feeds(**options)
        return pruned

    def _fail(self) -> None:
        if self.faults:
            raise self.faults.pop(0)


class SilentNotifier:
    """Tells nobody anything."""

    def hint(self, topic: str) -> None:
        """Say nothing."""

    async def subscribe(self, on_hint: object) -> Any:
        """Subscribe to nothing."""
        return lambda: None

    async def close(self) -> None:
        """Do nothing."""


def feed_world(*, hints: bool = True) -> tuple[FeedHub, WatchedFeeds, Stores]:
    """Return a hub over a memory store whose feeds are watched."""
    stores = open_memory_stores()
    watched = WatchedFeeds(stores.feeds)
    notifier: Any = stores.notifier if hints else SilentNotifier()
    stores = replace(stores, feeds=watched, notifier=notifier)
    return FeedHub(stores), watched, stores


def item(number: int, *, key: bool = True) -> NewEntry:
    """Return an entry that says its number."""
    return NewEntry("item", str(number), f"item/{number}" if key else None)


def away() -> StoreUnavailableError:
    """Return what a store raises that is away for a moment."""
    return StoreUnavailableError("away for a moment")
