"""The caches of one open app, by name, and the flights of what is being made for them.

Whoever asks for what is being made already waits for that. When the one who makes it fails or is cancelled, the next
one who waits makes it, in a context of its own: an error of one job is not told to another. For one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from headrace.model.cache import CacheBounds
from headrace.model.errors import ConfigError
from headrace.ports.cache import SharedCache


class FlownCache:
    """A cache whose missing entries are made once at a time in this process."""

    def __init__(self, shared: SharedCache, bounds: CacheBounds) -> None:
        self.shared, self.bounds = shared, bounds
        self._flights: dict[str, asyncio.Future[str | None]] = {}

    async def get_or_make(self, key: str, make: Callable[[], Awaitable[str]]) -> str:
        """Return what is under a key; what is not there is made, kept and returned."""
        while (flight := self._flights.get(key)) is not None:
            made = await asyncio.shield(flight)
            if made is not None:
                return made
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        text: str | None = None
        try:
            # Within the flight: what another one put meanwhile is seen.
            text = await self.shared.get(key)
            if text is None:
                text = await make()
                await self.shared.put(key, text)
            return text
        finally:
            del self._flights[key]
            flight.set_result(text)


class Caches:
    """Makes each cache on first use. `open_shared`: what makes one, which connects when it is used."""

    def __init__(self, open_shared: Callable[[str, CacheBounds], SharedCache]) -> None:
        self._open = open_shared
        self._open_ones: dict[str, FlownCache] = {}

    def named(self, name: str, bounds: CacheBounds) -> FlownCache:
        """Return the cache of a name. Raises ConfigError when it is in use with other bounds."""
        cache = self._open_ones.get(name)
        if cache is None:
            cache = self._open_ones[name] = FlownCache(self._open(name, bounds), bounds)
        if cache.bounds != bounds:
            raise ConfigError(
                f"cache {name!r} is in use with other bounds ({cache.bounds}); write app.cache({name!r}, …) the same "
                "everywhere"
            )
        return cache

    async def close(self) -> None:
        """Let go of all of them."""
        caches, self._open_ones = self._open_ones, {}
        for cache in caches.values():
            await cache.shared.close()
