"""Caches: answers that are good for a while, by what they were made from."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from headrace.model.cache import MAX_VALUE_BYTES, CacheBounds, CacheStats
from headrace.model.names import check_key, check_name
from headrace.model.payload import encode_json

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.engine.caching.caches import FlownCache


class Cache:
    """Values by key, within bounds; when it is full, what was not asked for longest gives way.

    A cache is a hint: each entry may be gone at any time, and all of them when the app is closed. Nothing may rest on
    one. It is shared by the tasks of this process, on a Ray cluster by all that run there. Keys are best made by
    `Cache.key`, of all that a value depends on.

    >>> from headrace import App, Cache
    >>> app = App("memory://")
    >>> async def main() -> None:
    ...     async with app:
    ...         cache = app.cache("summaries", entries=100, ttl="10m")
    ...         async def summarise() -> str:
    ...             print("asked")
    ...             return "likes rye"
    ...         key = Cache.key("prompt 3", "en", ["I bake rye bread"])
    ...         print([await cache.get_or_make(key, summarise) for _ in range(3)][-1])
    ...         print((await cache.stats()).hits)
    >>> import asyncio; asyncio.run(main())
    asked
    likes rye
    2
    """

    def __init__(self, app: App, name: str, bounds: CacheBounds) -> None:
        self._app, self.bounds = app, bounds
        self.name = check_name("cache", name)

    def __repr__(self) -> str:
        return f"Cache({self.name!r})"

    @staticmethod
    def key(*parts: Any) -> str:
        """Return a key of the content of its parts, any JSON: the same for equal ones, whatever the order of keys.

        Raises InvalidInputError for what is no JSON.

        >>> Cache.key({"a": 1, "b": 2}) == Cache.key({"b": 2, "a": 1}) != Cache.key({"a": 1}, {"b": 2})
        True
        """
        checked = json.loads(encode_json(parts, field="parts", most=16 * MAX_VALUE_BYTES))
        text = json.dumps(checked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value under a key, 1 to 255 printable characters, else `default`."""
        text = await self._parts.shared.get(check_key("key", key))
        return default if text is None else json.loads(text)

    async def put(self, key: str, value: Any) -> None:
        """Keep a value, any JSON up to 1 MiB, in place of what is there; one larger than the cache is not kept.

        Raises InvalidInputError, PayloadTooLargeError.
        """
        await self._parts.shared.put(check_key("key", key), _encoded(value))

    async def get_or_make(self, key: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """Return the value under a key; where there is none, await `make()`, keep what it returns, and return that.

        Whoever asks in this process meanwhile waits for the same answer. What `make` raises is raised to its own
        caller alone, and kept by nobody. Raises InvalidInputError, PayloadTooLargeError for what `make` returns.
        """

        async def encoded() -> str:
            return _encoded(await make())

        return json.loads(await self._parts.get_or_make(check_key("key", key), encoded))

    async def stats(self) -> CacheStats:
        """Return `entries` and `bytes` now, `hits`, `misses`, `evicted`, `expired` since it began, and `hit_rate`."""
        return await self._parts.shared.stats()

    async def clear(self) -> None:
        """Forget all entries."""
        await self._parts.shared.clear()

    @property
    def _parts(self) -> FlownCache:
        return self._app.runtime.caches.named(self.name, self.bounds)


def _encoded(value: Any) -> str:
    return encode_json(value, field="value", most=MAX_VALUE_BYTES)
