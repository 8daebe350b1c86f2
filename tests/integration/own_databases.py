"""Whole databases for tests: what is backed up, or what a deployment begins with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg

from tests.backends.server import shared_server


@asynccontextmanager
async def own_database() -> AsyncIterator[str]:
    """Make an empty database on the server of this test process; return its address."""
    name = f"own_{uuid4().hex[:12]}"
    await _say(f"CREATE DATABASE {name}")
    try:
        yield shared_server().dsn.replace("/postgres?", f"/{name}?")
    finally:
        await _say(f"DROP DATABASE {name} WITH (FORCE)")


async def _say(statement: str) -> None:
    connection = await asyncpg.connect(shared_server().dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
