"""The connections that there are on a server, seen from outside."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import asyncpg

from tests.backends.valkey import ValkeyServer
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


class Links(Protocol):
    """What others have open to a server; a connection is named by a number."""

    async def ours(self) -> set[int]:
        """Return the connections of Headrace."""
        ...

    async def in_transaction(self) -> list[str]:
        """Return the last statements of transactions in which nothing happens now."""
        ...

    async def cut(self, number: int) -> bool:
        """End a connection as an operator would; return whether it was there."""
        ...


class PostgresLinks:
    """Those to PostgreSQL."""

    def __init__(self, observer: asyncpg.Connection) -> None:
        self._observer = observer

    async def ours(self) -> set[int]:
        """Return the backends of connections that bear our name."""
        return await connections(self._observer)

    async def in_transaction(self) -> list[str]:
        """Return the last statements of transactions in which nothing happens now."""
        return await idle_in_transaction(self._observer, seconds=0)

    async def cut(self, number: int) -> bool:
        """Terminate a backend."""
        return bool(await self._observer.fetchval("SELECT pg_terminate_backend($1)", number))


class RedisLinks:
    """Those to a Redis server, where nobody but Headrace and the one who asks has any."""

    def __init__(self, server: ValkeyServer) -> None:
        self._server = server

    async def ours(self) -> set[int]:
        """Return the ids of all clients but the one who asks."""
        lines = self._server.call("CLIENT", "LIST").splitlines()
        return {int(found[1]) for line in lines if "cmd=client" not in line and (found := re.search(r"id=(\d+)", line))}

    async def in_transaction(self) -> list[str]:
        """Return none: a script is whole before anybody else is served."""
        return []

    async def cut(self, number: int) -> bool:
        """Kill a client."""
        return self._server.call("CLIENT", "KILL", "ID", number) == ":1"


@asynccontextmanager
async def links_to(site: Site) -> AsyncIterator[Links]:
    """Look at the connections to the server of a site."""
    if isinstance(site.server, ValkeyServer):
        yield RedisLinks(site.server)
        return
    async with observing(site.server.dsn) as observer:
        yield PostgresLinks(observer)


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
