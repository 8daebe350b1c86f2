"""The port of the user's own tables on PostgreSQL: connections of the store's pool, for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from headrace.model.errors import StoreUnavailableError
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.faults import TRY_AGAIN, sort_fault

_FAULTS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.exceptions.InternalClientError)


class PostgresOwnTables:
    """`ports.own_tables.OwnTables`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection. A server that is gone is the store's fault; what it says of a statement is the user's."""
        own: OSError | None = None
        try:
            async with self._database.lend() as connection:
                try:
                    yield connection
                except OSError as error:
                    # Of a file of the user's, say; but what does not answer in time is the server.
                    own = None if connection.is_closed() or isinstance(error, TimeoutError) else error
                    raise
        except TRY_AGAIN:
            raise  # the server is there, and the transaction is the user's to do again
        except _FAULTS as error:
            if error is own:
                raise
            fault = sort_fault(error)
            if isinstance(fault, StoreUnavailableError):
                raise fault from error
            raise
