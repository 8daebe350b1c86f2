"""From settings to what holds the caches of an app."""

from __future__ import annotations

import sys
from functools import cached_property

from headrace.engine.caching.caches import Caches
from headrace.engine.caching.local import LocalCache
from headrace.model.cache import CacheBounds, CacheStats
from headrace.ports.cache import SharedCache
from headrace.ray_settings import RAY
from headrace.settings import Settings

#: Whose `LocalCache` an actor has.
_ENTRY = "headrace.engine.caching.local"


def open_caches(settings: Settings) -> Caches:
    """Return the caches of an app that is being opened; each is connected when it is used first."""
    on_ray = RAY in settings.executors.values()

    def open_shared(name: str, bounds: CacheBounds) -> SharedCache:
        return RayCache(name, bounds, settings.ray.namespace) if on_ray else LocalCache(bounds)

    return Caches(open_shared)


class RayCache:
    """A cache that is shared on a Ray cluster while this process is of it, and this process's own otherwise."""

    def __init__(self, name: str, bounds: CacheBounds, namespace: str) -> None:
        self._name, self._bounds, self._namespace = name, bounds, namespace
        self._local = LocalCache(bounds)

    @cached_property
    def _shared(self) -> SharedCache:
        from headrace.executors.ray.cache_actor import ActorCache

        return ActorCache(self._name, self._bounds, self._namespace, _ENTRY)

    @property
    def _now(self) -> SharedCache:
        # Not imported for this: a process that has not done so is no part of a cluster.
        ray = sys.modules.get("ray")
        return self._shared if ray is not None and ray.is_initialized() else self._local

    async def get(self, key: str) -> str | None:
        """Return what was put under a key, if it is there."""
        return await self._now.get(key)

    async def put(self, key: str, text: str) -> None:
        """Keep a text under a key."""
        await self._now.put(key, text)

    async def clear(self) -> None:
        """Forget all entries."""
        await self._now.clear()

    async def stats(self) -> CacheStats:
        """Return what it holds, and its counts."""
        return await self._now.stats()

    async def close(self) -> None:
        """Let go of it."""
        await self._local.close()
        if "_shared" in self.__dict__:
            await self._shared.close()
