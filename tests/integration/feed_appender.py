"""A process that appends keyed entries to a feed, two at once, until it has appended all or is killed.

Run `python -m tests.integration.feed_appender KIND ADDRESS NAMESPACE COUNT`; it prints a line before it begins.
"""

from __future__ import annotations

import asyncio
import sys

from headrace.model.feed import NewEntry
from headrace.ports.stores import Stores
from headrace.stores.postgres import open_postgres_stores
from headrace.stores.redis import RedisSite, open_redis_stores

FEED = "batch:7"


async def main(kind: str, address: str, namespace: str, count: int) -> None:
    """Append every entry that the feed is to have, from the first on."""
    stores = await _open(kind, address, namespace)
    print("begun", flush=True)
    for number in range(0, count, 2):
        some = [NewEntry("item", str(each), f"k{each}") for each in (number, number + 1)]
        await asyncio.gather(stores.feeds.append_entries(FEED, some), stores.feeds.append_entries(FEED, some))
    await stores.close()


async def _open(kind: str, address: str, namespace: str) -> Stores:
    if kind == "redis":
        return await open_redis_stores(RedisSite(address, namespace))
    return await open_postgres_stores(address, schema=namespace)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
