"""What the façade does with the user's own tables: connections to them, and transactions that hint after commit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.model.errors import ConfigError
from headrace.transactions import begin_on

if TYPE_CHECKING:
    from headrace.model.event import Outgoing
    from headrace.model.job import NewJob


class DatabaseVerbs:
    """The part of `App` that is for the user's own tables."""

    def database(self: Any) -> AbstractAsyncContextManager[Any]:
        """Lend a connection of asyncpg to the store's database, where tables of your own may lie beside its own.

        Give it back soon: there are as many as `[queue] max_pool_size` lets this process have, less those in use by
        the store. What the database refuses is raised as asyncpg's own errors, also a deadlock:
        do the transaction again. Raises ConfigError where the store is
        no PostgreSQL, StoreUnavailableError when it cannot be reached, or none is free for 10 s.

        >>> async def main(app: App) -> None:  # doctest: +SKIP
        ...     async with app.database() as connection, app.transaction(connection):
        ...         await connection.execute("INSERT INTO orders VALUES (7)")
        ...         await send_receipt.options(connection=connection).enqueue(7)
        """
        tables = self.runtime.stores.own_tables
        if tables is None:
            raise ConfigError(
                "app.database() needs a PostgreSQL store: set HEADRACE_URL to postgresql://…, or leave it empty for an "
                "embedded one"
            )
        lent: AbstractAsyncContextManager[Any] = tables.connection()
        return lent

    @cached_property
    def _transactions(self) -> dict[int, list[str]]:
        """What to hint when a transaction begun by `transaction` commits, by the connection's identity."""
        return {}

    @asynccontextmanager
    async def transaction(self: Any, connection: Any) -> AsyncIterator[Any]:
        """Begin a transaction on the caller's connection; jobs and events of it are hinted after its commit.

        `connection`: of asyncpg, psycopg (async) or SQLAlchemy (async). One inside another is a savepoint: the
        outermost hints. Raises InvalidInputError for any other connection.
        """
        block = begin_on(connection)
        if id(connection) in self._transactions:
            async with block:
                yield connection
            return
        topics: list[str] = []
        self._transactions[id(connection)] = topics
        try:
            async with block:
                yield connection
        finally:
            del self._transactions[id(connection)]
        for topic in dict.fromkeys(topics):
            self.runtime.stores.notifier.hint(topic)

    async def enqueue_on(self: Any, connection: Any, jobs: Sequence[NewJob]) -> list[UUID]:
        """Insert jobs inside the caller's transaction (see `Task.options(connection=)`)."""
        topics = self._transactions.get(id(connection))
        ids: list[UUID] = await self.runtime.client.enqueue_on(connection, jobs, hint=topics is None)
        if topics is not None:
            topics.extend({f"queue:{job.spec.queue}" for job in jobs})
        return ids

    async def emit_on(self: Any, connection: Any, events: Sequence[Outgoing]) -> None:
        """Put events into the outbox inside the caller's transaction (see `emit(connection=)`)."""
        topics = self._transactions.get(id(connection))
        await self.runtime.client.emit_on(connection, events, hint=topics is None)
        if topics is not None:
            topics.append("events")
