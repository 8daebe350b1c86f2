"""A pool of asyncpg connections that costs nothing while a connection is idle.

It connects on demand, waits a bounded time for a free connection, and throws away what may be in an unknown state:
connections that closed, that are inside a transaction, or whose statement ended without the server's word.
The driver's own pool spends two tasks and a round trip on each use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

from headrace.model.errors import HeadraceError, StoreUnavailableError
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.faults import NO_LONGER_OURS


class Pool:
    """At most `size` connections made by `connect`; a caller waits at most `wait` seconds for one."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], *, size: int, wait: float) -> None:
        self._connect, self._wait, self._size = connect, wait, size
        self._idle: list[Connection] = []
        self._room = asyncio.Semaphore(size)
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection."""
        await self._take_room()
        try:
            connection = await self._take()
            try:
                yield connection
            except (asyncpg.PostgresError, HeadraceError) as error:
                if isinstance(error, NO_LONGER_OURS):
                    # All of them lead to a server that stops, or that takes no writes: the next ask for another.
                    connection.terminate()
                    self._drop_idle()
                raise
            except BaseException:
                # Cancelled, timed out, cut off: an answer may still be on its way, so nobody can use it any more.
                connection.terminate()
                raise
            finally:
                await self._give_back(connection)
        finally:
            self._room.release()

    async def close(self) -> None:
        """Close idle connections now and lent ones when they come back."""
        self._closed = True
        while self._idle:
            await _close(self._idle.pop())

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().terminate()

    async def _take_room(self) -> None:
        if not self._room.locked():
            await self._room.acquire()
            return
        try:
            async with asyncio.timeout(self._wait):
                await self._room.acquire()
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"All {self._size} connections to the store were in use for {self._wait:g} s. Raise max_pool_size, or "
                "submit more items per call."
            ) from error

    async def _take(self) -> Connection:
        if self._closed:
            raise StoreUnavailableError("This store was closed. Open the application again before using it.")
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await self._connect()

    async def _give_back(self, connection: Connection) -> None:
        if connection.is_closed():
            return
        if connection.is_in_transaction():
            connection.terminate()
        elif self._closed:
            await _close(connection)
        else:
            self._idle.append(connection)


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=2)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()
