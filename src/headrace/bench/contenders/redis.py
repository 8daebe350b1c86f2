"""Counting in Redis what a system records there."""

from __future__ import annotations

from typing import Any


class RedisCounter:
    """Counts keys and the members of keys, on a connection of the benchmark's."""

    def __init__(self, url: str) -> None:
        from redis.asyncio import Redis

        self._redis: Any = Redis.from_url(url)

    async def empty(self) -> None:
        """Empty the database, which is the benchmark's alone."""
        await self._redis.flushdb()

    async def keys(self, prefix: str) -> int:
        """Return how many keys begin with `prefix`."""
        count = 0
        async for _ in self._redis.scan_iter(match=f"{prefix}*", count=10_000):
            count += 1
        return count

    async def fields(self, key: str) -> int:
        """Return how many fields a hash has."""
        return int(await self._redis.hlen(key))

    async def members(self, key: str) -> int:
        """Return how many members a sorted set has."""
        return int(await self._redis.zcard(key))

    async def close(self) -> None:
        """Disconnect."""
        await self._redis.aclose()
