"""The cache of resume handles on a Redis server beside PostgreSQL: nothing rests on it, and all of it may go."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.engine.events.callbacks import Callbacks
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import encode
from headrace.model.event import Event
from headrace.model.ids import uuid7
from headrace.model.resume_handle import HandleState, HandleView, NewHandle
from headrace.ports.bus import Delivery
from headrace.ports.handle_cache import CACHE_SECONDS
from headrace.stores.memory import open_memory_stores
from headrace.stores.redis import handle_cache as caching
from headrace.stores.redis import make_handle_cache
from headrace.stores.redis.handle_cache import RedisHandleCache
from tests.backends.valkey import ValkeyServer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MADE = "Shop.Order.Made"


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """A server that keeps nothing on disk."""
    made = ValkeyServer(port=True, appendonly="no")
    yield made
    made.remove()


@pytest.fixture
async def cache(server: ValkeyServer) -> AsyncIterator[RedisHandleCache]:
    """An empty cache."""
    made = make_handle_cache(server.url, prefix=f"t{uuid7().hex}")
    yield made
    await made.close()


def handle(correlation_id: str = "c-1", **facts: Any) -> HandleView:
    """Return a handle as a store would."""
    view = HandleView(
        correlation_id, (MADE, "Shop.Order.Kept"), 2, ("Shop.Order.Asked",), ("packer",), HandleState.WAITING, 1,
        "prefect:1", False, NOW, NOW + timedelta(hours=1),
    )  # fmt: skip
    return replace(view, **facts)


ENDED = handle(state=HandleState.RESOLVED, arrived=2, ended_at=NOW, wake_due=True)


@pytest.mark.parametrize("view", [handle(), ENDED, handle("ключ {x} ü")], ids=["waiting", "ended", "any text"])
async def test_a_handle_comes_back_as_it_was_put(cache: RedisHandleCache, view: HandleView) -> None:
    """Whatever its correlation id is made of."""
    assert await cache.get(view.correlation_id) is None
    await cache.put(view)
    assert await cache.get(view.correlation_id) == view


async def test_what_came_with_a_token_stays_in_the_store(cache: RedisHandleCache, server: ValkeyServer) -> None:
    """It is nobody's business here."""
    await cache.put(replace(ENDED, payload='"secret"'))
    assert await cache.get("c-1") == ENDED
    assert "secret" not in server.call("GET", f"{cache.root}:resume:c-1")


async def test_an_end_is_not_taken_back(cache: RedisHandleCache) -> None:
    """One that waits is not put over one that has ended, and an end is put over it."""
    await cache.put(handle())
    await cache.put(ENDED)
    await cache.put(handle())
    assert await cache.get("c-1") == ENDED


async def test_it_is_forgotten_after_an_hour(cache: RedisHandleCache, server: ValkeyServer) -> None:
    """Waiting or not, under a key that people can read."""
    assert cache.root.endswith("::handles}")
    for number, view in enumerate((handle("c-0"), replace(ENDED, correlation_id="c-1"))):
        await cache.put(view)
        left = int(server.call("TTL", f"{cache.root}:resume:c-{number}").removeprefix(":"))
        assert CACHE_SECONDS - 60 < left <= CACHE_SECONDS


@pytest.mark.parametrize("text", ["no JSON", "[]", "{}", '{"state": "gone"}', "null"])
async def test_what_another_version_wrote_is_unknown(cache: RedisHandleCache, server: ValkeyServer, text: str) -> None:
    """It is asked of the store instead."""
    server.call("SET", f"{cache.root}:resume:c-1", text)
    assert await cache.get("c-1") is None


async def test_nothing_is_lost_when_the_server_is_emptied(cache: RedisHandleCache, server: ValkeyServer) -> None:
    """The callback service asks the store again, and fills the cache anew."""
    stores = open_memory_stores().events
    assert stores is not None
    await stores.handles.register_handle(NewHandle("c-1", (MADE,), 3, timedelta(hours=1)))
    service = Callbacks(stores.handles, cache, Telemetry(), ".dlt")
    for number in range(3):
        event = Event(MADE, "ShopOrder", "o-1", number, "c-1")
        await service.take(Delivery(encode(event, "headrace", "/test", "t"), 0, number))
        known = await cache.get("c-1")
        assert known is not None
        assert known.expect_count == 3
        server.call("FLUSHALL")
        assert await cache.get("c-1") is None
    view = await stores.handles.get_handle("c-1")
    assert view is not None
    assert (view.state, view.arrived) == (HandleState.RESOLVED, 3)


async def test_a_server_that_is_away_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """It is said once, and for a while nobody waits for it again."""
    cache = make_handle_cache("redis://127.0.0.1:1/0")
    async with asyncio.timeout(20):
        for _ in range(100):
            await cache.put(handle())
            assert await cache.get("c-1") is None
    await cache.close()
    assert [record.message.split(",")[0] for record in caplog.records if record.name == "headrace.handles"] == [
        "the cache of resume handles is away"
    ]


async def test_a_server_that_hangs_is_left_alone(server: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it answers again: then it is used again."""
    monkeypatch.setattr(caching, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(caching, "AWAY_SECONDS", 0.2)
    cache = make_handle_cache(server.url, prefix=f"t{uuid7().hex}")
    await cache.put(ENDED)
    server.signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(5):
            assert await cache.get("c-1") is None
            assert await cache.get("c-1") is None
    finally:
        server.signal(signal.SIGCONT)
    async with asyncio.timeout(10):
        while await cache.get("c-1") != ENDED:
            await asyncio.sleep(0.02)
    await cache.close()
