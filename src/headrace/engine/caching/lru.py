"""A bounded map of texts: what was not asked for longest gives way, and each entry has an end. The time is passed in.

Threads may share it: every method holds its lock, and waits for nothing else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

from headrace.model.cache import CacheBounds, CacheStats


class LruMap:
    """Texts by key, within bounds.

    >>> from datetime import timedelta
    >>> texts = LruMap(CacheBounds(entries=2, bytes=1_000, ttl=timedelta(seconds=60)))
    >>> for key in ("a", "b", "c"): texts.put(key, key.upper(), now=0.0)
    >>> texts.get("a", now=1.0), texts.get("c", now=1.0), texts.get("c", now=60.0)
    (None, 'C', None)
    """

    def __init__(self, bounds: CacheBounds) -> None:
        self.bounds = bounds
        self._lock = threading.Lock()
        #: As UTF-8, which is what is counted; the one that was not asked for longest first.
        self._texts: OrderedDict[str, bytes] = OrderedDict()
        #: When each one ends; the soonest first, since all last as long.
        self._ends: OrderedDict[str, float] = OrderedDict()
        self._stats = CacheStats()
        self._bytes = 0

    def get(self, key: str, now: float) -> str | None:
        """Return what is under a key at `now`, in seconds of a clock that only goes forward."""
        with self._lock:
            self._expire(now)
            found = self._texts.get(key)
            if found is None:
                self._stats = replace(self._stats, misses=self._stats.misses + 1)
                return None
            self._texts.move_to_end(key)
            self._stats = replace(self._stats, hits=self._stats.hits + 1)
            return found.decode()

    def put(self, key: str, text: str, now: float) -> None:
        """Put a text under a key, in place of an earlier one; one that is larger than the whole map is not kept."""
        content = text.encode()
        with self._lock:
            self._expire(now)
            self._remove(key)
            size = _size(key, content)
            if size > self.bounds.bytes:
                return
            while self._texts and (len(self._texts) >= self.bounds.entries or self._bytes + size > self.bounds.bytes):
                self._remove(next(iter(self._texts)))
                self._stats = replace(self._stats, evicted=self._stats.evicted + 1)
            self._texts[key], self._ends[key] = content, now + self.bounds.ttl.total_seconds()
            self._bytes += size

    def clear(self) -> None:
        """Forget all entries; the counts stay."""
        with self._lock:
            self._texts.clear()
            self._ends.clear()
            self._bytes = 0

    def stats(self, now: float) -> CacheStats:
        """Return what is in it at `now`, and its counts."""
        with self._lock:
            self._expire(now)
            return replace(self._stats, entries=len(self._texts), bytes=self._bytes)

    def _expire(self, now: float) -> None:
        while self._ends:
            key, end = next(iter(self._ends.items()))
            if end > now:
                return
            self._remove(key)
            self._stats = replace(self._stats, expired=self._stats.expired + 1)

    def _remove(self, key: str) -> None:
        content = self._texts.pop(key, None)
        if content is not None:
            del self._ends[key]
            self._bytes -= _size(key, content)


def _size(key: str, content: bytes) -> int:
    return len(key.encode()) + len(content)
