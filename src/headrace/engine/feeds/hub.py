"""The hub of a process: whoever appends to feeds, reads them or follows them does it here.

Guaranteed to followers: every entry behind their place once, in order, also when the store is away meanwhile. A hint
makes the hub look at once; without one it looks every 500 ms, and every 2 s where nothing has come for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from headrace.engine.feeds.follower import Follower
from headrace.engine.feeds.tail import PAUSE, Tail
from headrace.engine.feeds.writers import Writers
from headrace.engine.outage import Outage
from headrace.model.errors import StoreUnavailableError
from headrace.model.feed import Entry, NewEntry, hint_topic
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.feeds")

#: Entries of one look, and reads at once in a process: followers must not keep the store from others.
PAGE, READS_AT_ONCE = 100, 4
#: Entries that a tail begins with: by them it is seen which of them a store has lost.
KNOWN = 20
#: Seconds between two looks of a tail at least.
SPACING = 0.02


class FeedHub:
    """Feeds of one open app. Each feed that is followed has one tail here, however many follow it."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._writers = Writers(stores.feeds)
        self._tails: dict[str, Tail] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(READS_AT_ONCE)
        self._unsubscribe: Callable[[], None] | None = None
        self._outage = Outage(LOG, "cannot read feeds")

    async def append(self, feed: str, entry: NewEntry) -> int:
        """Append an entry, together with others that come now; see `Writers.append`."""
        return await self._writers.append(feed, entry)

    async def append_all(self, feed: str, entries: Sequence[NewEntry]) -> list[int]:
        """Append several entries in their order, and return their numbers; see `Writers.append_all`."""
        return await self._writers.append_all(feed, entries)

    async def read(self, feed: str, *, after: int, limit: int) -> list[Entry]:
        """Return entries with numbers above `after`. Raises StoreUnavailableError."""
        async with self._turns:
            return await self._stores.feeds.read_feed(feed, after=after, limit=limit)

    async def end(self, feed: str) -> int:
        """Return the number of the last entry, 0 where there is none. Raises StoreUnavailableError."""
        tail = self._tails.get(feed)
        if tail is not None and tail.end:
            return tail.end
        async with self._turns:
            return await self._stores.feeds.feed_end(feed)

    async def follow(self, feed: str, *, after: int) -> AsyncGenerator[Entry, None]:
        """Yield the entries with numbers above `after` as they come, without end; see `Follower`."""
        async with self.follower(feed, after=after) as follower:
            while True:
                for entry in await follower.more():
                    yield entry

    @asynccontextmanager
    async def follower(self, feed: str, *, after: int) -> AsyncIterator[Follower]:
        """Follow a feed from behind a number on until the block ends."""
        await self._listen()
        tail = self._join(feed)
        try:
            yield Follower(tail, after, partial(self._catch_up, feed))
        finally:
            self._leave(feed, tail)

    async def close(self) -> None:
        """Stop following, and let appends that are under way end."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for tail in self._tails.values():
            tail.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._writers.close()

    def _join(self, feed: str) -> Tail:
        tail = self._tails.get(feed)
        if tail is None:
            tail = self._tails[feed] = Tail()
            self._tasks[feed] = asyncio.create_task(self._keep(feed, tail), name="headrace-feed-tail")
        tail.followers += 1
        return tail

    def _leave(self, feed: str, tail: Tail) -> None:
        tail.followers -= 1
        if not tail.followers:
            del self._tails[feed]
            self._tasks.pop(feed).cancel()

    async def _keep(self, feed: str, tail: Tail) -> None:
        """Keep a tail up to date until nobody follows it."""
        asked = True
        while True:
            tail.heard()
            try:
                async with self._turns:
                    await self._look(feed, tail, asked=asked)
                asked = False
            except StoreUnavailableError as error:
                # A store that was away may have lost its data, and the feed may have begun anew.
                asked = True
                self._outage.note(error)
            except Exception:
                LOG.exception("cannot read the feed %s, trying again", feed)
            asked |= await tail.wait(at_least=SPACING)

    async def _look(self, feed: str, tail: Tail, *, asked: bool) -> None:
        """Look what has come; `asked`: where the feed ends too, for it may have begun anew."""
        feeds = self._stores.feeds
        if tail.end is None:
            end = await feeds.feed_end(feed)
            tail.begin(end, await feeds.read_feed(feed, after=max(end - KNOWN, 0), limit=PAGE))
            return
        if asked and (end := await feeds.feed_end(feed)) < tail.end:
            last = await feeds.read_feed(feed, after=end - 1, limit=1) if end else []
            tail.cut(last[0] if last else None)
        while entries := await feeds.read_feed(feed, after=tail.end, limit=PAGE):
            tail.extend(entries)
            if len(entries) < PAGE:
                return

    async def _catch_up(self, feed: str, place: int, limit: int) -> list[Entry]:
        """Read behind a place, however long the store is away."""
        while True:
            try:
                return await self.read(feed, after=place, limit=limit)
            except StoreUnavailableError as error:
                self._outage.note(error)
            await asyncio.sleep(PAUSE)

    async def _listen(self) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = lambda: None
            self._unsubscribe = await self._stores.notifier.subscribe(self._on_hint)

    def _on_hint(self, topic: str) -> None:
        tail = self._tails.get(topic.removeprefix(_TOPIC)) if topic.startswith(_TOPIC) else None
        if tail is not None:
            tail.hint()


_TOPIC = hint_topic("")
