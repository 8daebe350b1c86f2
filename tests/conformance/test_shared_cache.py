"""What every cache keeps, forgets and counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from headrace.engine.caching.local import LocalCache
from headrace.model.cache import CacheBounds
from headrace.ports.cache import SharedCache

Open = Callable[[CacheBounds], SharedCache]


@pytest.fixture(params=["local"])
async def open_cache(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """What makes a cache of its own for a test."""
    assert request.param == "local"
    made: list[SharedCache] = []

    def make(bounds: CacheBounds) -> SharedCache:
        made.append(LocalCache(bounds))
        return made[-1]

    yield make
    for cache in made:
        await cache.close()


def bounds(entries: int = 100, bytes: int = 10_000) -> CacheBounds:
    """Bounds of an hour."""
    return CacheBounds(entries, bytes, timedelta(hours=1))


async def test_what_was_put_is_there_and_the_latest_stands(open_cache: Open) -> None:
    """Texts of any language come back as they were; another one under the key takes the place of the first."""
    cache = open_cache(bounds())
    assert await cache.get("a") is None
    await cache.put("a", "naïve 记忆")
    assert await cache.get("a") == "naïve 记忆"
    await cache.put("a", "")
    assert await cache.get("a") == ""
    stats = await cache.stats()
    assert (stats.entries, stats.hits, stats.misses, stats.evicted) == (1, 2, 1, 0)


async def test_what_was_not_asked_for_longest_gives_way(open_cache: Open) -> None:
    """By entries: a look keeps an entry alive, and evictions are counted."""
    cache = open_cache(bounds(entries=2))
    await cache.put("a", "1")
    await cache.put("b", "2")
    assert await cache.get("a") == "1"
    await cache.put("c", "3")
    assert [await cache.get(key) for key in "abc"] == ["1", None, "3"]
    assert (await cache.stats()).evicted == 1


async def test_bytes_are_bounded(open_cache: Open) -> None:
    """Keys and values count, as UTF-8; what is larger than the whole is not kept, and what it replaced is gone."""
    cache = open_cache(bounds(bytes=10))
    await cache.put("a", "记忆")  # 1 + 6
    await cache.put("b", "xy")  # 1 + 2
    assert (await cache.stats()).bytes == 10
    await cache.put("c", "x")
    assert [await cache.get(key) for key in "abc"] == [None, "xy", "x"]
    await cache.put("b", "x" * 10)
    assert [await cache.get(key) for key in "bc"] == [None, "x"]
    assert (await cache.stats()).bytes == 2


async def test_all_is_forgotten_on_request(open_cache: Open) -> None:
    """Entries go, counts stay."""
    cache = open_cache(bounds())
    await cache.put("a", "1")
    assert await cache.get("a") == "1"
    await cache.clear()
    assert await cache.get("a") is None
    stats = await cache.stats()
    assert (stats.entries, stats.bytes, stats.hits, stats.misses) == (0, 0, 1, 1)


async def test_many_at_once_keep_the_bounds(open_cache: Open) -> None:
    """Twenty writers and readers: no text of another key, and never more than fits."""
    cache = open_cache(bounds(entries=50, bytes=2_000))

    async def use(worker: int) -> None:
        for number in range(100):
            key = f"{worker}/{number % 10}"
            await cache.put(key, key * 2)
            assert await cache.get(key) in (key * 2, None)

    await asyncio.gather(*(use(worker) for worker in range(20)))
    stats = await cache.stats()
    assert stats.entries <= 50
    assert stats.bytes <= 2_000
    assert stats.hits + stats.misses == 2_000
