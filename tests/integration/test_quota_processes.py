"""Three client processes on one key, a real limiter, a provider that refuses: what the benchmark measures, in short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from benchmarks.quota import Figures, measure
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.redis import new_prefix
from tests.backends.server import shared_server
from tests.backends.valkey import shared_server as shared_valkey

Run = Callable[[str, int], Awaitable[Figures]]
#: Seven seconds at the quota of the benchmark.
CALLS = 700


async def on_postgres(scenario: str, calls: int) -> Figures:
    """Run a scenario on a schema of its own."""
    async with empty_schema() as schema, stores_on(schema, None):
        address = {"kind": "postgres", "url": shared_server().dsn, "key": schema}
        return await asyncio.to_thread(measure, scenario, address, calls=calls)


async def on_redis(scenario: str, calls: int) -> Figures:
    """Run a scenario with keys of its own."""
    address = {"kind": "redis", "url": shared_valkey().url, "key": new_prefix()}
    return await asyncio.to_thread(measure, scenario, address, calls=calls)


@pytest.mark.parametrize(("run", "scenario"), [(on_postgres, "requests, burst 1 s"), (on_redis, "tokens, burst 1 s")])
async def test_processes_share_a_quota_that_they_know(run: Run, scenario: str) -> None:
    """At least 95 % of it is used, and nothing is refused."""
    figures = await run(scenario, CALLS)
    assert figures.refused == 0
    assert figures.calls == CALLS // 3 * 3
    assert figures.utilisation >= 0.95, figures


async def test_processes_find_a_halved_quota() -> None:
    """At most 2 % of the calls are refused, and within five seconds what is left is used."""
    figures = await on_postgres("halved, burst 1 s", 750)
    assert 0 < figures.refused_share <= 0.02, figures
    assert figures.recovery is not None
    assert figures.recovery <= 5, figures
