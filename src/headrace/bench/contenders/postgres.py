"""Counting what a system's own tables record as done, on a connection of the benchmark's."""

from __future__ import annotations

from typing import Any

from headrace.bench.statements import read


class Counter:
    """Counts by one statement of the benchmark's."""

    def __init__(self, dsn: str, statement: str) -> None:
        self._dsn, self._statement = dsn, statement
        self._connection: Any = None

    async def count(self) -> int:
        """Return the count of this moment."""
        if self._connection is None:
            import asyncpg

            self._connection = await asyncpg.connect(self._dsn, server_settings={"jit": "off"})
        return int(await self._connection.fetchval(read(self._statement)))

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()
