"""The connections that there are on a server, seen from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tests.faults.redis_witness import is_redis, read_connections
from tests.faults.site import Site
from tests.waiting import wait_until


async def connections(observer: asyncpg.Connection) -> set[int]:
    """Return the processes of the server that serve connections of Headrace."""
    rows = await observer.fetch("SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace'")
    return {row["pid"] for row in rows}


async def clients(observer: asyncpg.Connection) -> set[int]:
    """Return the processes that serve connections of anybody but the observer: a pooler's do not bear our name."""
    rows = await observer.fetch(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    return {row["pid"] for row in rows}


async def idle_in_transaction(observer: asyncpg.Connection, *, seconds: float = 2.0) -> list[str]:
    """Return the last statements of transactions in which nothing has happened for so long."""
    rows = await observer.fetch(
        "SELECT query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        " AND state_change < now() - make_interval(secs => $1)", seconds,
    )  # fmt: skip
    return [row["query"] for row in rows]


@asynccontextmanager
async def observing(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """Lend a connection to look at the others."""
    observer = await asyncpg.connect(dsn)
    try:
        yield observer
    finally:
        await observer.close()


@asynccontextmanager
async def watched(site: Site) -> AsyncIterator[Site]:
    """Lend a site; then its processes are ended, and no connection and no transaction of theirs may be left.

    Each look has a connection of its own: the server may crash in between.
    """
    dsn = site.server.dsn
    if is_redis(dsn):
        async with _watched_redis(site, dsn):
            yield site
        return
    async with observing(dsn) as observer:
        before = len(await clients(observer))
    try:
        yield site
        async with observing(dsn) as observer:
            assert await idle_in_transaction(observer) == []
    finally:
        site.end()
    async with observing(dsn) as observer:

        async def back() -> bool:
            return len(await clients(observer)) <= before

        await wait_until(back, message=f"{before} connections as before")
        assert await idle_in_transaction(observer, seconds=0) == []


@asynccontextmanager
async def _watched_redis(site: Site, dsn: str) -> AsyncIterator[None]:
    before, _ = await read_connections(dsn)
    try:
        yield
    finally:
        site.end()

    async def back() -> bool:
        return (await read_connections(dsn))[0] <= before

    await wait_until(back, message=f"{before} connections as before")
