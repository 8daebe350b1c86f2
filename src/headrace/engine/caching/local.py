"""A cache of this process alone: the port over a bounded map."""

from __future__ import annotations

import time
from collections.abc import Callable

from headrace.engine.caching.lru import LruMap
from headrace.model.cache import CacheBounds, CacheStats


class LocalCache:
    """Implements `ports.cache.SharedCache`. `now`: seconds of a clock that only goes forward."""

    def __init__(self, bounds: CacheBounds, now: Callable[[], float] = time.monotonic) -> None:
        self._texts, self._now = LruMap(bounds), now

    async def get(self, key: str) -> str | None:
        """Return what was put under a key, if it is still there."""
        return self._texts.get(key, self._now())

    async def put(self, key: str, text: str) -> None:
        """Keep a text under a key."""
        self._texts.put(key, text, self._now())

    async def clear(self) -> None:
        """Forget all entries."""
        self._texts.clear()

    async def stats(self) -> CacheStats:
        """Return what it holds, and its counts."""
        return self._texts.stats(self._now())

    async def close(self) -> None:
        """Forget all entries: nobody else has them."""
        self._texts.clear()
