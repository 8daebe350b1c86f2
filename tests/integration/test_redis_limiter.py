"""A limiter on a Redis server beside another store: all it holds may be thrown away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from headrace.model.limits import Rate
from headrace.stores.redis import open_redis_limiter
from headrace.stores.redis.addresses import parse_address
from headrace.stores.redis.connection import Server, ServerOptions
from headrace.stores.redis.limiter_beside import LimiterBeside
from headrace.testing.clock import FakeClock
from tests.backends.redis import new_prefix
from tests.backends.valkey import shared_server
from tests.conformance.scenario import DAY, SECOND


@pytest.fixture
def clock() -> FakeClock:
    """Return a time that stands still."""
    return FakeClock()


@pytest.fixture
async def limiter(clock: FakeClock) -> AsyncIterator[LimiterBeside]:
    """Open a limiter with keys of its own."""
    limiter = await open_redis_limiter(shared_server().url, prefix=new_prefix(), clock=clock)
    yield limiter
    await limiter.close()


@pytest.fixture
async def server(limiter: LimiterBeside) -> AsyncIterator[Server]:
    """Return a connection beside it."""
    server = Server(ServerOptions(parse_address(shared_server().url), size=1))
    yield server
    await server.close()


def key(limiter: LimiterBeside, name: str) -> str:
    """Return the key of a bucket."""
    return f"{limiter._namespace.root}:bucket:{name}"


async def test_what_was_thrown_away_is_unknown_and_begins_empty(
    limiter: LimiterBeside, server: Server, clock: FakeClock
) -> None:
    """A bucket that is gone is told as unknown; declared again it gives no burst that was perhaps used just before."""
    await limiter.declare({"api": Rate(2.0, 10.0)})
    clock.advance(DAY)
    assert (await limiter.take({"api": 4.0})).units == {"api": 4.0}
    await server.call("DEL", key(limiter, "api"))

    assert (await limiter.take({"api": 1.0})).unknown == {"api"}
    await limiter.declare({"api": Rate(2.0, 10.0)})
    taken = await limiter.take({"api": 1.0})
    assert (taken.units, taken.wait) == ({}, timedelta(seconds=0.5))


@pytest.mark.parametrize(("rate", "days"), [(Rate(1.0, 10.0), 1), (Rate(1.0, 864_000.0), 10)])
async def test_a_bucket_stays_until_it_would_be_full(
    limiter: LimiterBeside, server: Server, rate: Rate, days: int
) -> None:
    """Buckets that nobody uses go by themselves, though never before they have filled up."""
    await limiter.declare({"api": rate})

    left = timedelta(milliseconds=await server.call("PTTL", key(limiter, "api")))
    assert days * DAY - 60 * SECOND < left <= days * DAY + SECOND


async def test_all_that_is_kept_goes_by_itself(limiter: LimiterBeside, server: Server) -> None:
    """Buckets that are declared, closed and used leave nothing that stays for ever: no server is to be tidied up."""
    await limiter.declare({"api": Rate(1.0, 10.0)})
    await limiter.close_bucket("other", SECOND)
    await limiter.take({"api": 1.0})

    names = await server.call("KEYS", f"{limiter._namespace.root}:*")
    assert len(names) == 2
    assert min([await server.call("PTTL", name) for name in names]) > 0


async def test_a_closed_bucket_stays_closed_for_its_time(limiter: LimiterBeside, server: Server) -> None:
    """A bucket that the provider closed for longer than a day is kept that long."""
    await limiter.declare({"api": Rate(1.0, 1.0)})
    await limiter.close_bucket("api", 3 * DAY)

    assert await server.call("PTTL", key(limiter, "api")) > 2 * 86_400_000


async def test_a_debt_that_takes_longer_than_a_key_may_live_is_kept(limiter: LimiterBeside, clock: FakeClock) -> None:
    """At the smallest rate a billion units are owed for longer than a server can count: the call does not fail."""
    slowest = Rate(0.001 / 86_400, 1.0)
    await limiter.declare({"api": slowest})
    clock.advance(slowest.missing(0.0, 1.0))
    assert (await limiter.take({"api": 1e9})).units == {"api": 1e9}
    taken = await limiter.take({"api": 1.0})
    assert (taken.units, taken.wait > 365 * DAY) == ({}, True)
