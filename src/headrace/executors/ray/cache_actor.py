"""One cache for all processes of a cluster: texts in an actor of its own, by the name of the cache.

The actor is made by who asks first, and outlives who made it. Nothing may rest on it: while it is away, or a process is
not connected, nothing is known and nothing is kept.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import astuple
from datetime import timedelta
from typing import Any

import ray

from headrace.daemon_threads import DaemonThreads
from headrace.model.cache import CacheBounds, CacheStats
from headrace.ports.cache import SharedCache

LOG = logging.getLogger("headrace.ray")

NAME = "headrace-cache-"
#: An actor that does not answer for so long is away, and is asked again no sooner than after the pause; a process that
#: asks for the first time waits while it starts.
ANSWER_SECONDS, START_SECONDS = 2.0, 15.0
PAUSE_SECONDS = 1.0


class CacheHolder:
    """What the actor is: texts within bounds. Arguments and answers are texts and numbers alone."""

    def __init__(self, entry: str, entries: int, size: int, ttl_seconds: float) -> None:
        bounds = CacheBounds(entries, size, timedelta(seconds=ttl_seconds))
        self._cache: SharedCache = importlib.import_module(entry).LocalCache(bounds)

    async def get(self, key: str) -> str | None:
        """Return the text under a key."""
        return await self._cache.get(key)

    async def put(self, key: str, text: str) -> None:
        """Keep a text."""
        await self._cache.put(key, text)

    async def clear(self) -> None:
        """Forget all."""
        await self._cache.clear()

    async def stats(self) -> tuple[int, ...]:
        """Return the figures in the order of `CacheStats`."""
        return astuple(await self._cache.stats())


class ActorCache:
    """Implements `ports.cache.SharedCache` over the actor of a name."""

    def __init__(self, name: str, bounds: CacheBounds, namespace: str, entry: str) -> None:
        """`entry`: the module with the `LocalCache` that the actor has."""
        self._entry = entry
        self._name, self._bounds, self._namespace = NAME + name, bounds, namespace
        self._threads = DaemonThreads()
        self._actor: Any = None
        self._answered, self._rests_until = False, 0.0
        self._lock = asyncio.Lock()

    async def get(self, key: str) -> str | None:
        """Return what was put under a key, if it is there and the actor is."""
        found: str | None = await self._ask(lambda actor: actor.get.remote(key))
        return found

    async def put(self, key: str, text: str) -> None:
        """Keep a text, if the actor is there."""
        await self._ask(lambda actor: actor.put.remote(key, text))

    async def clear(self) -> None:
        """Forget all entries."""
        await self._ask(lambda actor: actor.clear.remote())

    async def stats(self) -> CacheStats:
        """Return what it holds, and its counts since the actor began."""
        figures = await self._ask(lambda actor: actor.stats.remote())
        return CacheStats() if figures is None else CacheStats(*figures)

    async def close(self) -> None:
        """Let go of the actor; others have it still."""
        self._actor = None

    async def _ask(self, call: Callable[[Any], Awaitable[Any]]) -> Any:
        now = asyncio.get_running_loop().time
        if now() < self._rests_until:
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS if self._answered else START_SECONDS):
                answer = await call(await self._found())
            self._answered = True
            return answer
        # Whatever Ray raises: what it holds may be gone at any time.
        except Exception as error:
            LOG.info("the cache %s is away: %s", self._name, type(error).__name__)
            self._actor, self._answered, self._rests_until = None, False, now() + PAUSE_SECONDS
            return None

    async def _found(self) -> Any:
        async with self._lock:
            if self._actor is None:
                self._actor = await self._threads.run(self._find)
            return self._actor

    def _find(self) -> Any:
        """Return the actor, which is made where there is none. Its calls are not repeated, but it begins again."""
        bounds = self._bounds
        maker: Any = ray.remote(CacheHolder)
        return maker.options(
            name=self._name, namespace=self._namespace, get_if_exists=True, lifetime="detached", num_cpus=0,
            max_restarts=-1, max_task_retries=0,
        ).remote(self._entry, bounds.entries, bounds.bytes, bounds.ttl.total_seconds())  # fmt: skip
