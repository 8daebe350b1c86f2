"""What the integration tests of events on PostgreSQL share: an outbox, an inbox and a relay's term in few words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from headrace.model.event import Event, Outgoing, outgoing
from headrace.model.session import LeaderTerm, Role
from headrace.ports.stores import EventStores, Stores
from headrace.stores.postgres.database import Database, DatabaseOptions, Transaction
from tests.integration.postgres_setup import LEASE, register, schema_stores, shared_server

#: A statement by name, and its values.
Step = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Events:
    """Stores on a schema of their own, a database beside them, and the term of a relay."""

    schema: str
    stores: Stores
    database: Database
    term: LeaderTerm

    @property
    def ports(self) -> EventStores:
        """Return the ports of events."""
        assert self.stores.events is not None
        return self.stores.events

    async def emit(self, *keys: str) -> list[int]:
        """Insert an event for each key and return the positions."""
        before = set(await self.waiting())
        await self.ports.outbox.insert_events([event(key) for key in keys])
        return sorted(set(await self.waiting()) - before)

    async def waiting(self) -> list[int]:
        """Return the positions that wait, in their order."""
        return [row.position for row in await self.ports.outbox.waiting_events(limit=10_000)]

    async def park(self, *positions: int) -> None:
        """Park rows."""
        await self.ports.outbox.park_events([(position, "too large") for position in positions], term=self.term)

    async def hold(self, *positions: int) -> list[int]:
        """Hold rows."""
        return await self.ports.outbox.hold_events(positions, term=self.term)

    async def state(self) -> tuple[int, int, int]:
        """Return how many rows wait, are held and are parked."""
        stats = await self.ports.outbox.outbox_stats()
        return stats.waiting, stats.held, stats.parked


@asynccontextmanager
async def events_on(**options: Any) -> AsyncIterator[Events]:
    """Open stores with a relay that leads."""
    async with schema_stores(**options) as (schema, stores):
        database = Database(DatabaseOptions(shared_server().dsn, schema=schema))
        term = await stores.sessions.lead(await register(stores), lease=LEASE, role=Role.RELAY)
        assert term is not None
        try:
            yield Events(schema, stores, database, term)
        finally:
            await database.close()


def event(key: str = "a", **facts: Any) -> Outgoing:
    """Return an event of an aggregate."""
    return outgoing(Event("Mill.Sack.Filled", "Sack", key, **{"payload": {"kilos": 25}, **facts}))


async def in_transaction(database: Database, steps: Sequence[Step], then: Callable[[], Awaitable[None]]) -> None:
    """Run statements in one transaction, and `then` before it commits."""

    async def work(tx: Transaction) -> None:
        for name, values in steps:
            await tx.fetch(name, **values)
        await then()

    await database.run(work)
