"""The connections that Headrace has on a server, seen from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tests.waiting import wait_until


async def connections(observer: asyncpg.Connection) -> set[int]:
    """Return the processes of the server that serve connections of Headrace."""
    rows = await observer.fetch("SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace'")
    return {row["pid"] for row in rows}


async def idle_in_transaction(observer: asyncpg.Connection, *, seconds: float = 2.0) -> list[str]:
    """Return the last statements of transactions in which nothing has happened for so long."""
    rows = await observer.fetch(
        "SELECT query FROM pg_stat_activity WHERE application_name = 'headrace' AND state LIKE 'idle in transaction%'"
        " AND state_change < now() - make_interval(secs => $1)", seconds,
    )  # fmt: skip
    return [row["query"] for row in rows]


@asynccontextmanager
async def watched(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """Lend an observer; afterwards there are as many connections as before, and no transaction is left open."""
    observer = await asyncpg.connect(dsn)
    try:
        before = len(await connections(observer))
        yield observer
        assert await idle_in_transaction(observer) == []

        async def back() -> bool:
            return len(await connections(observer)) == before

        await wait_until(back, message=f"{before} connections as before")
        assert await idle_in_transaction(observer, seconds=0) == []
    finally:
        await observer.close()
