"""Caches of an app, and the cache of results of memory: bounds, expiry, one maker at a time, keys of content."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import App, Cache, ConfigError, InvalidInputError, PayloadTooLargeError
from headrace.apps.memory.cache import NAME, ResultCache, answer_key
from headrace.engine.caching.local import LocalCache
from headrace.engine.caching.lru import LruMap
from headrace.memory_settings import MemorySettings
from headrace.model.cache import CacheBounds
from headrace.settings import Settings, use_store
from tests.waiting import wait_until

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """An open app in memory."""
    app = App("memory://")
    async with app:
        yield app


async def test_entries_end_with_their_time() -> None:
    """From when they were put, not from when they were asked for; what ended makes room and is counted."""
    now = 0.0
    cache = LocalCache(CacheBounds(10, 1_000, MINUTE), now=lambda: now)
    await cache.put("a", "1")
    now = 30.0
    await cache.put("b", "2")
    assert await cache.get("a") == "1"
    now = 60.0
    assert [await cache.get("a"), await cache.get("b")] == [None, "2"]
    await cache.put("b", "3")
    now = 119.0
    assert await cache.get("b") == "3"
    now = 120.0
    stats = await cache.stats()
    assert (stats.entries, stats.bytes, stats.expired, stats.evicted) == (0, 0, 2, 0)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.text(max_size=12)), st.integers(0, 40)),
        max_size=60,
    )
)
def test_it_is_what_a_plain_list_of_entries_is(steps: list[tuple[str, str | None, int]]) -> None:
    """Whatever is put and asked for when: the same as a list that is searched, and never above its bounds."""
    bounds, now = CacheBounds(3, 30, MINUTE), 0.0
    texts = LruMap(bounds)
    plain: list[tuple[str, str, float]] = []

    def size(key: str, text: str) -> int:
        return len(key.encode()) + len(text.encode())

    for key, text, seconds in steps:
        now += seconds
        plain = [entry for entry in plain if now < entry[2] + 60]
        found = [entry for entry in plain if entry[0] == key]
        if text is None:
            assert texts.get(key, now) == (found[0][1] if found else None)
            plain = [entry for entry in plain if entry[0] != key] + found
            continue
        texts.put(key, text, now)
        plain = [entry for entry in plain if entry[0] != key]
        if size(key, text) <= bounds.bytes:
            plain.append((key, text, now))
        while len(plain) > bounds.entries or sum(size(*entry[:2]) for entry in plain) > bounds.bytes:
            plain.pop(0)
        stats = texts.stats(now)
        assert (stats.entries, stats.bytes) == (len(plain), sum(size(*entry[:2]) for entry in plain))


def test_threads_may_share_it() -> None:
    """Eight threads at once: counts add up, and bounds hold."""
    texts = LruMap(CacheBounds(20, 400, MINUTE))

    def use(worker: int) -> None:
        for number in range(500):
            key = f"{worker}{number % 7}"
            texts.put(key, key, 0.0)
            texts.get(key, 0.0)

    threads = [threading.Thread(target=use, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    stats = texts.stats(0.0)
    assert stats.hits + stats.misses == 8 * 500
    assert stats.entries <= 20
    assert stats.bytes == sum(len(key) * 2 for key in texts._texts)


async def test_an_answer_is_made_once_at_a_time(app: App) -> None:
    """Ten ask at once: one makes it, all have it; later it is there."""
    cache, made = app.cache("answers"), 0
    go = asyncio.Event()

    async def make() -> dict[str, int]:
        nonlocal made
        made += 1
        await go.wait()
        return {"made": made}

    asking = [asyncio.create_task(cache.get_or_make("key", make)) for _ in range(10)]
    await wait_until(lambda: made == 1)
    go.set()
    assert await asyncio.gather(*asking) == [{"made": 1}] * 10
    assert await cache.get("key") == {"made": 1}
    assert made == 1


async def test_an_error_is_of_the_one_who_made_it(app: App) -> None:
    """The first one fails, the second is cancelled while it makes it, the third makes it: nobody waits for ever."""
    cache = app.cache("answers")
    begun: list[str] = []
    go = {"first": asyncio.Event(), "second": asyncio.Event()}

    async def ask(name: str) -> str:
        async def make() -> str:
            begun.append(name)
            if name in go:
                await go[name].wait()
                raise ValueError(name)
            return name

        made = await cache.get_or_make("key", make)
        assert isinstance(made, str)
        return made

    first = asyncio.create_task(ask("first"))
    await wait_until(lambda: begun == ["first"])
    second = asyncio.create_task(ask("second"))
    await asyncio.sleep(0)
    third = asyncio.create_task(ask("third"))
    await asyncio.sleep(0)
    go["first"].set()
    with pytest.raises(ValueError, match="first"):
        await first
    await wait_until(lambda: begun == ["first", "second"])
    second.cancel()
    assert await asyncio.wait_for(third, 10) == "third"
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_one_who_waits_may_be_cancelled(app: App) -> None:
    """The one who makes it goes on."""
    cache, go, begun = app.cache("answers"), asyncio.Event(), False

    async def make() -> int:
        nonlocal begun
        begun = True
        await go.wait()
        return 7

    maker = asyncio.create_task(cache.get_or_make("key", make))
    await wait_until(lambda: begun)
    waiter = asyncio.create_task(cache.get_or_make("key", make))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    go.set()
    assert await asyncio.wait_for(maker, 10) == 7


async def test_none_is_a_value(app: App) -> None:
    """It is told from nothing by the default."""
    cache = app.cache("answers")
    await cache.put("none", None)
    assert [await cache.get("none", 1), await cache.get("other", 1)] == [None, 1]


async def test_what_a_cache_cannot_keep_is_refused_by_name(app: App) -> None:
    """Bounds, names, keys and values, each with its rule."""
    for options in ({"entries": 0}, {"bytes": 0}, {"ttl": 0}, {"ttl": "31d"}):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            app.cache("answers", **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="cache"):
        app.cache("No Name")
    cache = app.cache("answers")
    with pytest.raises(InvalidInputError, match="key"):
        await cache.get("")
    with pytest.raises(InvalidInputError, match="value"):
        await cache.put("key", float("nan"))
    with pytest.raises(PayloadTooLargeError):
        await cache.put("key", "x" * (1 << 20))
    with pytest.raises(ConfigError, match="other bounds"):
        await app.cache("answers", entries=1).get("key")


async def test_a_cache_is_of_one_opening_of_its_app() -> None:
    """Closed and opened again it is empty; while it is closed it cannot be asked."""
    app = App("memory://")
    cache = app.cache("answers")
    async with app:
        await cache.put("key", 1)
    with pytest.raises(ConfigError, match="not open"):
        await cache.get("key")
    async with app:
        assert await cache.get("key") is None


def test_keys_are_of_content() -> None:
    """The order of keys does not matter; every part does, and where one ends and the next begins."""
    assert Cache.key({"a": 1, "b": "é"}) == Cache.key({"b": "é", "a": 1})
    assert len({Cache.key("ab", "c"), Cache.key("a", "bc"), Cache.key("abc"), Cache.key(["ab", "c"])}) == 4
    base = {"prompt": "summary/1", "model": "m", "language": "en"}
    keys = {answer_key("x", **base), answer_key("y", **base)}
    keys |= {answer_key("x", **{**base, name: "zh"}) for name in base}
    assert len(keys) == 5
    with pytest.raises(InvalidInputError, match="parts"):
        Cache.key(object())


def of_memory(**changes: object) -> App:
    """An app with `[memory]` settings."""
    memory = replace(MemorySettings(), **changes)  # type: ignore[arg-type]
    return App(settings=use_store(replace(Settings(), memory=memory), "memory://"))


async def test_results_of_memory_have_the_bounds_of_its_settings() -> None:
    """Entries, megabytes and time, by default 10,000, 1,024 and an hour; the cache is the app's own, by its name."""
    async with of_memory() as app:
        results = ResultCache(app)
        await results.put("key", "text")
        bounds = CacheBounds(10_000, 1_024 << 20, timedelta(hours=1))
        assert await Cache(app, NAME, bounds).get("key") == "text"
    async with of_memory(cache_entries=1) as app:
        results = ResultCache(app)
        await results.put("a", "1")
        await results.put("b", "2")
        assert [await results.get("a"), await results.get("b")] == [None, "2"]
        stats = await results.stats()
        assert stats is not None
        assert (stats.evicted, stats.hit_rate) == (1, 0.5)


async def test_without_caching_nothing_is_known() -> None:
    """`enable_caching = false`: each answer is asked for, and there is nothing to count."""
    async with of_memory(enable_caching=False) as app:
        results = ResultCache(app)
        await results.put("key", "text")
        assert await results.get("key") is None
        assert await results.stats() is None
