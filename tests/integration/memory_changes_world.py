"""Memory's consumer of changes on a real database, with the tables it needs: what the tests of it share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from headrace import App
from headrace.apps.memory.changes import register_consumer, trigger_sql
from headrace.apps.memory.tables.statements import read_sql
from headrace.event_settings import EventSettings
from headrace.memory_settings import MemorySettings
from headrace.settings import QueueSettings, load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server

PREFIX = "memory"


@dataclass
class World:
    """Tables, and what was looked at: of each user, how many rows the last look saw."""

    store: str
    schema: str
    events: EventSettings
    connection: asyncpg.Connection[Any]

    @property
    def topic(self) -> str:
        """Where changes are told."""
        return f"{PREFIX}.{self.schema}.buffer_zone"

    def app(self, seen: dict[str, int] | None = None, **memory: Any) -> App:
        """Return an app with the consumer; a look takes the note of its user, and tells `seen` how many rows it saw."""
        settings = load_settings(environ={})
        settings = replace(
            settings, queue=QueueSettings(type="postgres", url=shared_server().dsn, schema=self.store),
            memory=MemorySettings(schema=self.schema, prefix=PREFIX, **memory), events=self.events,
        )  # fmt: skip
        app, looks = App(settings=settings), {} if seen is None else seen

        @app.task(name="check_buffer", queue="memory_buffer")
        async def check_buffer(user_id: str) -> None:
            async with app.database() as connection, app.transaction(connection):
                await connection.execute(f"DELETE FROM {self.schema}.pending_checks WHERE user_id = $1", user_id)
                rows = await connection.fetchval(
                    f"SELECT count(*) FROM {self.schema}.buffer_zone WHERE user_id = $1", user_id
                )
            looks[user_id] = max(rows, looks.get(user_id, 0))

        agent = register_consumer(app, check_buffer)
        # The broker is that of other tests too: members of theirs may still be about to leave.
        agent.definition.group = f"consumer-{self.schema}"
        return app

    async def insert(self, *users: str, connection: Any = None) -> list[UUID]:
        """Insert a row of each user, in one statement."""
        ids, own = [uuid4() for _ in users], connection or self.connection
        await own.execute(
            f"INSERT INTO {self.schema}.users (id) SELECT DISTINCT name FROM unnest($1::text[]) AS g (name) "
            "ORDER BY name ON CONFLICT DO NOTHING", list(users),
        )  # fmt: skip
        await own.execute(
            f"INSERT INTO {self.schema}.buffer_zone (id, blob_id, token_size, user_id, blob_type) "
            "SELECT g.id, gen_random_uuid(), 7, g.name, 'chat' FROM unnest($1::uuid[], $2::text[]) AS g (id, name)",
            ids, list(users),
        )  # fmt: skip
        return ids

    async def told(self) -> list[Any]:
        """Return the raw messages of the outbox."""
        rows = await self.connection.fetch(
            f"SELECT event_id, topic, key, raw, headers, message FROM {self.store}.event_outbox ORDER BY position"
        )
        return list(rows)

    async def users(self, sql: str) -> list[str]:
        """Return one column of texts."""
        return [row[0] for row in await self.connection.fetch(sql)]

    async def pending(self) -> list[str]:
        """Return the users that are noted."""
        return await self.users(f"SELECT user_id FROM {self.schema}.pending_checks ORDER BY user_id")

    async def jobs(self, app: App) -> list[str]:
        """Return the users of the jobs that wait."""
        views = await app.runtime.stores.inspect.list_jobs(task="check_buffer", limit=10_000)
        return sorted(view.args["args"][0] for view in views)


@asynccontextmanager
async def world(*, trigger: bool = True, events: EventSettings | None = None) -> AsyncIterator[World]:
    """Make tables of one's own, beside a store of one's own."""
    schema = f"memory_{uuid4().hex[:10]}"
    async with empty_schema() as store, stores_on(store, None):
        connection = await asyncpg.connect(shared_server().dsn)
        try:
            await connection.execute(f"CREATE SCHEMA {schema}")
            await connection.execute(read_sql("schema.sql", schema))
            if trigger:
                await connection.execute(trigger_sql(schema, store, PREFIX))
            yield World(store, schema, events or EventSettings(), connection)
        finally:
            await connection.execute(f"DROP SCHEMA {schema} CASCADE")
            await connection.close()
