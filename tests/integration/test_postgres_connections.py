"""Connections: a process keeps to the number it was given."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from headrace.ports.stores import Stores
from tests.integration.postgres_setup import LEASE, claim, connection, enqueue, register, schema_stores


async def connections(other: Any) -> set[int]:
    """Return the processes of the server that serve this library."""
    rows = await other.fetch("SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace'")
    return {row["pid"] for row in rows}


async def use(stores: Stores, session: UUID) -> None:
    """Use both pools at once, many times more often than they have connections."""
    await asyncio.gather(*(enqueue(stores, 1) for _ in range(40)), *(claim(stores, session, 1) for _ in range(40)))


async def test_a_process_never_has_more_connections_than_it_may() -> None:
    """Four allowed: enqueues, claims, the listener and the heartbeat together use exactly four."""
    async with connection() as other:
        before = await connections(other)
        async with schema_stores(max_pool_size=4) as (_, stores):
            session = await register(stores)
            stop = await stores.notifier.subscribe(lambda _: None)
            assert stores.private_sessions is not None
            async with stores.private_sessions() as heartbeat:
                await heartbeat.renew_session(session, lease=LEASE, stats={})
                for _ in range(3):
                    using = asyncio.create_task(use(stores, session))
                    while not using.done():
                        assert len(await connections(other) - before) <= 4
                    await using
                assert len(await connections(other) - before) == 4
            stop()
