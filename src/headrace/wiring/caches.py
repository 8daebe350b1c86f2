"""From settings to what holds the caches of an app."""

from __future__ import annotations

from headrace.engine.caching.caches import Caches
from headrace.engine.caching.local import LocalCache
from headrace.model.cache import CacheBounds
from headrace.ports.cache import SharedCache
from headrace.settings import Settings


def open_caches(settings: Settings) -> Caches:
    """Return the caches of an app that is being opened; each is connected when it is used first."""

    def open_shared(name: str, bounds: CacheBounds) -> SharedCache:
        return LocalCache(bounds)

    return Caches(open_shared)
