"""Measure one command at a time, and from 64 callers at once: redis-py beside the connections of the Redis store.

Needs redis-py and a server, which `make bench` installs: .venv-bench/bin/python benchmarks/redis_client.py
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from headrace.bench.redis_server import own_redis
from headrace.stores.redis.addresses import parse_address
from headrace.stores.redis.connection import Server, ServerOptions

ROUNDS, ALONE, CALLERS, EACH = 3, 2_000, 64, 50
COMMAND = ("INCR", "{bench}:counter")

Call = Callable[[], Awaitable[object]]


async def measure(name: str, call: Call) -> None:
    """Print what one way of calling takes."""
    seconds = []
    cpu = time.process_time()
    for _ in range(ALONE):
        begun = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - begun)
    alone_cpu = (time.process_time() - cpu) / ALONE
    cpu, begun = time.process_time(), time.perf_counter()
    await asyncio.gather(*(_repeat(call) for _ in range(CALLERS)))
    took, together_cpu = time.perf_counter() - begun, (time.process_time() - cpu) / (CALLERS * EACH)
    print(
        f"{name:9} alone: median {statistics.median(seconds) * 1e6:.0f} µs, processor {alone_cpu * 1e6:.0f} µs; "
        f"{CALLERS} callers: {CALLERS * EACH / took:,.0f}/s, processor {together_cpu * 1e6:.0f} µs"
    )


async def _repeat(call: Call) -> None:
    for _ in range(EACH):
        await call()


async def main(url: str) -> None:
    """Measure both in turns."""
    pool = BlockingConnectionPool.from_url(url, max_connections=8, decode_responses=True, retry=Retry(NoBackoff(), 0))
    client, server = Redis(connection_pool=pool), Server(ServerOptions(parse_address(url), size=8))
    for _ in range(ROUNDS):
        await measure("redis-py", lambda: client.execute_command(*COMMAND))
        await measure("headrace", lambda: server.call(*COMMAND))
    await client.aclose()
    await pool.aclose()
    await server.close()


if __name__ == "__main__":
    with own_redis() as address:
        asyncio.run(main(address))
