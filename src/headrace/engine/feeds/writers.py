"""Appending to feeds: what comes while a call is under way goes together in the next one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from headrace.engine.retrying import with_retries
from headrace.model.errors import ConfigError
from headrace.model.feed import NewEntry
from headrace.ports.feed_store import FeedStore

#: Entries of one call, and characters of their data after which no more are taken into it.
MOST_ENTRIES, MOST_CHARACTERS = 500, 1 << 20


@dataclass(slots=True)
class _Together:
    """Entries that were given together: none is appended behind one that was not."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An entry to append, and who is told its number."""

    entry: NewEntry
    among: _Together
    answer: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Writers:
    """Appends to feeds, each by one call at a time; a feed that nobody appends to costs nothing."""

    def __init__(self, store: FeedStore) -> None:
        self._store = store
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def append(self, feed: str, entry: NewEntry) -> int:
        """Append an entry and return its number.

        With a key it is tried again for about four seconds while the store does not answer; without one it might then
        stand twice. Raises StoreUnavailableError.
        """
        return (await self.append_all(feed, [entry]))[0]

    async def append_all(self, feed: str, entries: Sequence[NewEntry]) -> list[int]:
        """Append several entries in their order, as `append` does one; none behind one that could not be appended."""
        among = _Together()
        added = [_Waiting(entry, among) for entry in entries]
        if not added:
            return []
        waiting = self._waiting.get(feed)
        if waiting is None:
            waiting = self._waiting[feed] = deque()
            self._tasks[feed] = asyncio.create_task(self._write(feed, waiting), name="headrace-feed-writer")
        waiting.extend(added)
        return list(await asyncio.gather(*(one.answer for one in added)))

    async def close(self) -> None:
        """Let what is under way end."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _write(self, feed: str, waiting: deque[_Waiting]) -> None:
        try:
            while waiting:
                await self._send(feed, _take(waiting))
        finally:
            del self._waiting[feed], self._tasks[feed]
            _fail(waiting, ConfigError("the app was closed before an entry was appended; append it again"))

    async def _send(self, feed: str, taken: Sequence[_Waiting]) -> None:
        part = [one for one in taken if one.among.error is None]
        for one in taken:
            if one.among.error is not None:
                _fail([one], one.among.error)
        if not part:
            return
        entries = [one.entry for one in part]
        try:
            if entries[0].key is None:
                numbers = await self._store.append_entries(feed, entries)
            else:
                numbers = await with_retries(lambda _: self._store.append_entries(feed, entries))
        except Exception as error:
            _fail(part, error)
            return
        for one, number in zip(part, numbers, strict=True):
            if not one.answer.done():  # whoever asked may have been cancelled
                one.answer.set_result(number)


def _take(waiting: deque[_Waiting]) -> list[_Waiting]:
    """Take the first of them, and what may go with it: entries with keys are tried again, others are not."""
    keyed = waiting[0].entry.key is not None
    part: list[_Waiting] = []
    size = 0
    for one in takewhile(lambda one: (one.entry.key is not None) is keyed, waiting):
        if len(part) == MOST_ENTRIES or size > MOST_CHARACTERS:
            break
        part.append(one)
        size += len(one.entry.data)
    for _ in part:
        waiting.popleft()
    return part


def _fail(part: Sequence[_Waiting], error: Exception) -> None:
    for one in part:
        one.among.error = error
        if not one.answer.done():
            one.answer.set_exception(error)
