"""The PostgreSQL store for tests: a schema of its own for each test, on one server per test process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg

from headrace.ports.clock import Clock
from headrace.ports.stores import Stores
from headrace.stores.postgres import open_postgres_stores
from tests.backends.server import shared_server


@asynccontextmanager
async def open_test_stores(clock: Clock | None, **options: Any) -> AsyncIterator[Stores]:
    """Open a store on a schema of its own, and drop that afterwards. `options` go to `open_postgres_stores`."""
    async with test_schema() as schema:
        options = {"dsn": shared_server().dsn, "schema": schema, "auto_migrate": True, "clock": clock, **options}
        stores = await open_postgres_stores(**options)
        try:
            yield stores
        finally:
            await stores.close()


@asynccontextmanager
async def test_schema() -> AsyncIterator[str]:
    """Name a schema that no one else uses; whatever was made in it is dropped at the end."""
    name = f"test_{uuid4().hex[:16]}"
    try:
        yield name
    finally:
        connection = await asyncpg.connect(shared_server().dsn)
        await connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
        await connection.close()


test_schema.__test__ = False  # type: ignore[attr-defined]
