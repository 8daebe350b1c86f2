"""The Redis store for tests: a namespace that no one else uses, on one server per test process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

from headrace.ports.clock import Clock
from headrace.ports.stores import Stores
from headrace.stores.redis import RedisSite, create_namespace, open_redis_stores
from tests.backends.valkey import shared_server


@asynccontextmanager
async def open_test_stores(clock: Clock | None, **options: Any) -> AsyncIterator[Stores]:
    """Open empty stores whose time is `clock` (None: the server's). `options` go to `open_redis_stores`."""
    async with empty_site() as site, stores_on(site, clock, **options) as stores:
        yield stores


@asynccontextmanager
async def stores_on(site: RedisSite, clock: Clock | None, **options: Any) -> AsyncIterator[Stores]:
    """Open stores on a namespace that exists."""
    stores = await open_redis_stores(site, clock=clock, **options)
    try:
        yield stores
    finally:
        await stores.close()


@asynccontextmanager
async def empty_site(**facts: Any) -> AsyncIterator[RedisSite]:
    """Make a namespace, and forget its keys afterwards: what a test left behind is no one's."""
    site = replace(RedisSite(shared_server().url, prefix=new_prefix()), **facts)
    await create_namespace(site)
    yield site


def new_prefix() -> str:
    """Name a namespace that does not exist."""
    return f"test-{uuid4().hex[:16]}"
