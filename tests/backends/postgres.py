"""The PostgreSQL store for tests: a schema that no one else uses, on one server per test process.

Making a schema takes longer than most tests, so `open_test_stores` empties and reuses those it made.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import cache
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg

from headrace.ports.clock import Clock
from headrace.ports.stores import Stores
from headrace.stores.postgres import open_postgres_stores
from tests.backends.pooler import pgbouncer
from tests.backends.server import shared_server

#: Set to 1, all stores of a run work through PgBouncer: `TEST_POSTGRES_POOLED=1 pytest tests/conformance`.
POOLED = os.environ.get("TEST_POSTGRES_POOLED") == "1"

_FREE: list[str] = []


@asynccontextmanager
async def open_test_stores(clock: Clock | None, **options: Any) -> AsyncIterator[Stores]:
    """Open empty stores whose time is `clock` (None: the server's). `options` go to `open_postgres_stores`."""
    async with empty_schema() as schema, stores_on(schema, clock, **options) as stores:
        yield stores


@asynccontextmanager
async def stores_on(schema: str, clock: Clock | None, **options: Any) -> AsyncIterator[Stores]:
    """Open stores on a schema, which is filled when it is not there."""
    address = {"dsn": _pooler(), "pooled": True} if POOLED else {"dsn": shared_server().dsn}
    chosen: dict[str, Any] = {**address, "schema": schema, "auto_migrate": True, "clock": clock, **options}
    stores = await open_postgres_stores(**chosen)
    try:
        yield stores
    finally:
        await stores.close()


@asynccontextmanager
async def empty_schema() -> AsyncIterator[str]:
    """Name a schema whose tables are empty, or not made yet."""
    schema = _FREE.pop() if _FREE else new_schema_name()
    yield schema
    # Not reached by a test that failed or broke off: what it left behind is no one's.
    await asyncio.to_thread(_empty, schema)
    _FREE.append(schema)


@asynccontextmanager
async def fresh_schema() -> AsyncIterator[str]:
    """Name a schema that nobody had before, for tests of plans: one that was emptied keeps its statistics."""
    schema = new_schema_name()
    yield schema
    connection = await asyncpg.connect(shared_server().dsn)
    await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    await connection.close()


@cache
def _pooler() -> str:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(pgbouncer(shared_server()))


def new_schema_name() -> str:
    """Name a schema that does not exist."""
    return f"test_{uuid4().hex[:16]}"


def _empty(schema: str) -> None:
    try:
        _delete_rows(_cleaner(), schema)
    except psycopg.OperationalError:
        # The server was started again meanwhile, or a test ended each connection there was.
        _cleaner.cache_clear()
        _delete_rows(_cleaner(), schema)


@cache
def _cleaner() -> psycopg.Connection[tuple[Any, ...]]:
    """Return the connection that empties schemas: one that knows their tables needs a tenth of what a new one does."""
    connection = psycopg.connect(shared_server().dsn, autocommit=True, prepare_threshold=None)
    atexit.register(connection.close)
    return connection


def _delete_rows(connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> None:
    rows = connection.execute(
        """SELECT relname, pg_relation_size(oid) > 1000000 AS big FROM pg_class
        WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r' AND relname <> 'migrations'""",
        [schema],
    ).fetchall()
    # A table that was big would keep its pages; truncating small ones takes longer.
    how = {False: "DELETE FROM", True: "TRUNCATE"}
    if rows:
        connection.execute("".join(f'{how[big]} "{schema}"."{name}";' for name, big in rows).encode())
