"""The durable stores that the machine runs beside the memory store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from headrace.model.stats import Pruned
from headrace.ports.stores import Stores
from tests.backends import redis
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server
from tests.machine.side_by_side import SideBySide


class WithPostgres(SideBySide):
    """The memory store and PostgreSQL."""

    async def open_other(self) -> Stores:
        """Open a schema, and a connection to read what no port shows."""
        self.schema = await self.opened.enter_async_context(empty_schema())
        self.reader: asyncpg.Connection[Any] = await asyncpg.connect(shared_server().dsn)
        self.opened.push_async_callback(self.reader.close)
        return await self.opened.enter_async_context(stores_on(self.schema, self.clock, listen=False))

    def note_pruned(self, pruned: Pruned) -> None:
        """Let the next patrol begin at the front: jobs of sessions that are gone may otherwise wait for its turn."""
        super().note_pruned(pruned)
        self.other.jobs._sweeper._patrol = 0  # type: ignore[attr-defined]

    async def leader_there(self) -> Any:
        """Read the leader's row."""
        row = await self.reader.fetchrow(f'SELECT session, term, expires_at FROM "{self.schema}".leader')
        return None if row is None else tuple(row)


class WithRedis(SideBySide):
    """The memory store and Redis."""

    async def open_other(self) -> Stores:
        """Open a namespace."""
        self.site = await self.opened.enter_async_context(redis.empty_site())
        return await self.opened.enter_async_context(redis.stores_on(self.site, self.clock, listen=False))

    async def leader_there(self) -> Any:
        """Read the leader's hash."""
        server = self.other.sessions._namespace._server  # type: ignore[attr-defined]
        session, term, until = await server.call("HMGET", f"{self.site.root}:leader", "session", "term", "expires_at")
        if session is None:
            return None
        return UUID(session), int(term), datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(until))
