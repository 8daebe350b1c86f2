"""Fixtures of the integration tests: a Redis namespace of a test's own, and what looks at it from both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.stores.redis import RedisSite
from headrace.stores.redis.addresses import parse_address
from headrace.stores.redis.connection import Server, ServerOptions
from headrace.testing.clock import FakeClock
from tests.backends.redis import empty_site, stores_on
from tests.conformance.scenario import Scenario


@pytest.fixture
async def site() -> AsyncIterator[RedisSite]:
    """Name a namespace of its own."""
    async with empty_site() as site:
        yield site


@pytest.fixture
async def server(site: RedisSite) -> AsyncIterator[Server]:
    """Return a connection beside the stores."""
    server = Server(ServerOptions(parse_address(site.url), site.root, size=1))
    yield server
    await server.close()


@pytest.fixture
async def on(site: RedisSite) -> AsyncIterator[Scenario]:
    """Open stores on it, under a clock that stands still."""
    clock = FakeClock()
    async with stores_on(site, clock) as stores:
        yield Scenario(stores, clock)
