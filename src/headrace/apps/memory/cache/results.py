"""The cache of results: a hint, as `[memory]` bounds it. Answers that were paid for are kept by the store besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace import App, Cache
    from headrace.model.cache import CacheStats

NAME = "memory"
MEGABYTE = 1024 * 1024


class ResultCache:
    """Texts by content, shared by all tasks that reach the app's cache; without `enable_caching` it knows nothing.

    Bounds are `[memory] cache_entries`, `cache_size_mb` and `cache_ttl`: 10,000, 1,024 and 1h.

    >>> from headrace import App
    >>> app = App("memory://")
    >>> async def main() -> None:
    ...     async with app:
    ...         cache = ResultCache(app)
    ...         await cache.put("key", "likes rye")
    ...         print(await cache.get("key"), await cache.get("other"))
    >>> import asyncio; asyncio.run(main())
    likes rye None
    """

    def __init__(self, app: App) -> None:
        memory = app.settings.memory
        self._cache: Cache | None = None
        if memory.enable_caching:
            size = memory.cache_size_mb * MEGABYTE
            self._cache = app.cache(NAME, entries=memory.cache_entries, bytes=size, ttl=memory.cache_ttl)

    async def get(self, key: str) -> str | None:
        """Return the text under a key, None where there is none."""
        found = None if self._cache is None else await self._cache.get(key)
        return found if isinstance(found, str) else None

    async def put(self, key: str, text: str) -> None:
        """Keep a text of up to 1 MiB. Raises PayloadTooLargeError."""
        if self._cache is not None:
            await self._cache.put(key, text)

    async def stats(self) -> CacheStats | None:
        """Return entries, bytes, hits, misses, evictions and the hit rate; None without a cache."""
        return None if self._cache is None else await self._cache.stats()
