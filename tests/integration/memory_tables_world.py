"""Memory's tables for tests: an app on a schema of its own, and short names for what the tests put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from headrace import App
from headrace.apps.memory.data.events import Tag
from headrace.apps.memory.data.flushes import Flush, Held, Reason
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.tables import MemoryTables, NewBlob
from headrace.settings import load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server

LEASE = timedelta(minutes=1)
NO_TIME = timedelta()
WRITERS = 8


@asynccontextmanager
async def open_apps(number: int, **memory: Any) -> AsyncIterator[list[App]]:
    """Open so many apps, as processes of their own would be, on one new schema of memory that has no tables yet."""
    wanted = {"schema": f"memory_{uuid4().hex[:12]}", "source": "debezium", **memory}
    async with empty_schema() as schema, stores_on(schema, None), AsyncExitStack() as stack:
        environ = {"HEADRACE_URL": shared_server().dsn, "HEADRACE_QUEUE_SCHEMA": schema}
        environ |= {f"HEADRACE_MEMORY_{name.upper()}": str(value) for name, value in wanted.items()}
        settings = load_settings(environ=environ)
        yield [await stack.enter_async_context(App(settings=settings)) for _ in range(number)]
        connection = await asyncpg.connect(shared_server().dsn)
        await connection.execute(f'DROP SCHEMA IF EXISTS "{wanted["schema"]}" CASCADE')
        await connection.close()


@asynccontextmanager
async def open_tables(number: int, **memory: Any) -> AsyncIterator[list[MemoryTables]]:
    """Open the same tables so many times, each with connections of its own."""
    async with open_apps(number, **memory) as apps:
        tables = [MemoryTables(app) for app in apps]
        await tables[0].set_up()
        yield tables


@asynccontextmanager
async def open_one() -> AsyncIterator[MemoryTables]:
    """Open new tables."""
    async with open_tables(1) as tables:
        yield tables[0]


def chat(user_id: str = "ada", tokens: int = 10, *, id: UUID | None = None, at: datetime | None = None) -> NewBlob:
    """Return a chat of one message that says who it is."""
    blob_id = id or uuid4()
    data = {"messages": [{"role": "user", "content": str(blob_id)}]}
    return NewBlob(user_id, "chat", data, tokens, blob_id, at)


async def fill(tables: MemoryTables, rows: int, user_id: str = "ada", tokens: int = 10) -> list[UUID]:
    """Insert chats and return their ids."""
    return await tables.insert_blobs([chat(user_id, tokens) for _ in range(rows)])


async def flushes(
    tables: MemoryTables, rows: int = 1, user_id: str = "ada", most: int = 10, reason: Reason = Reason.FULL
) -> list[Flush]:
    """Insert chats of 10 tokens and make flushes of them."""
    await fill(tables, rows, user_id)
    return await tables.make_flushes(user_id, reason, most_tokens=most)


async def held(tables: MemoryTables, flush: Flush, lease: timedelta = LEASE) -> Held:
    """Begin a flush that is free."""
    begun = await tables.begin_flush(flush.id, lease)
    assert isinstance(begun, Held), begun
    return begun


def add(topic: str, sub_topic: str, content: str) -> ProfileChange:
    """Return a new slot."""
    return ProfileChange("add", topic, sub_topic, content, 0)


def told(text: str, *changes: ProfileChange, tags: tuple[Tag, ...] = ()) -> FlushResult:
    """Return what a flush came to: an event of one line."""
    return FlushResult("en", f"- {text}", tags=tags, changes=changes)


async def rows_of(tables: MemoryTables, table: str, order: str = "1") -> list[dict[str, Any]]:
    """Return all rows of a table."""
    schema = tables._app.settings.memory.schema
    async with tables._app.database() as connection:
        return [dict(row) for row in await connection.fetch(f'SELECT * FROM "{schema}".{table} ORDER BY {order}')]


async def execute(tables: MemoryTables, statement: str, *values: Any) -> None:
    """Run a statement of the test's own; {schema} is that of the tables."""
    async with tables._app.database() as connection:
        await connection.execute(statement.format(schema=f'"{tables._app.settings.memory.schema}"'), *values)
