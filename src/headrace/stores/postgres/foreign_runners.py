"""One runner per kind of connection that transactional enqueue understands. Values are what each driver takes as is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from headrace.stores.postgres.database import Database
from headrace.stores.postgres.queries import Query, load_query


class _Runner:
    """Common part: the statement, and the parameters with the store's time."""

    def __init__(self, connection: Any, database: Database) -> None:
        self._connection, self._database = connection, database

    def _prepare(self, name: str, values: dict[str, Any]) -> tuple[Query, dict[str, Any]]:
        query = load_query(name, self._database.schema)
        values.setdefault("now", self._database.now())
        return query, {parameter: values[parameter] for parameter in query.parameters}


class AsyncpgRunner(_Runner):
    """On an asyncpg connection, or one lent by its pool."""

    async def fetch(self, name: str, /, **values: Any) -> Sequence[Any]:
        """Run a statement."""
        query, values = self._prepare(name, values)
        rows: Sequence[Any] = await self._connection.fetch(query.numbered, *values.values())
        return rows

    def savepoint(self) -> AbstractAsyncContextManager[Any]:
        """Open a savepoint, or a transaction where the caller has none."""
        context: AbstractAsyncContextManager[Any] = self._connection.transaction()
        return context


class AsyncPsycopgRunner(_Runner):
    """On an asynchronous psycopg connection; the caller's row factory is left alone."""

    async def fetch(self, name: str, /, **values: Any) -> Sequence[Any]:
        """Run a statement."""
        from psycopg.rows import tuple_row

        query, values = self._prepare(name, values)
        async with self._connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query.named, values)
            rows: Sequence[Any] = await cursor.fetchall() if cursor.description else []
        return rows

    def savepoint(self) -> AbstractAsyncContextManager[Any]:
        """Open a savepoint, or a transaction where the caller has none."""
        return _kept_open(self._connection)


@asynccontextmanager
async def _kept_open(connection: Any) -> AsyncIterator[None]:
    """Open a savepoint inside a transaction that stays the caller's to end.

    psycopg's block commits when it finds no transaction begun; outside of autocommit that would take the decision
    from the caller.
    """
    if not connection.autocommit:
        await connection.execute(b"")  # begins the transaction that psycopg opens with the first statement
    async with connection.transaction():
        yield


class PsycopgRunner(_Runner):
    """On a synchronous psycopg connection: it blocks, as its owner expects of it."""

    async def fetch(self, name: str, /, **values: Any) -> Sequence[Any]:
        """Run a statement."""
        from psycopg.rows import tuple_row

        query, values = self._prepare(name, values)
        with self._connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(query.named, values)
            rows: Sequence[Any] = cursor.fetchall() if cursor.description else []
        return rows

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[Any]:
        """Open a savepoint, or a transaction where the caller has none."""
        if not self._connection.autocommit:
            self._connection.execute(b"")
        with self._connection.transaction():
            yield


class AlchemyRunner(_Runner):
    """On a synchronous SQLAlchemy connection or session."""

    async def fetch(self, name: str, /, **values: Any) -> Sequence[Any]:
        """Run a statement."""
        connection = _alchemy_connection(self._connection)
        result = connection.exec_driver_sql(*self._for_dialect(connection, name, values))
        rows: Sequence[Any] = result.fetchall() if result.returns_rows else []
        return rows

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[Any]:
        """Open a savepoint."""
        with self._connection.begin_nested():
            yield

    def _for_dialect(self, connection: Any, name: str, values: dict[str, Any]) -> tuple[str, Any]:
        query, values = self._prepare(name, values)
        if connection.dialect.paramstyle == "pyformat":
            return query.named, values
        return query.numbered, tuple(values.values())


class AsyncAlchemyRunner(AlchemyRunner):
    """On an asynchronous SQLAlchemy connection or session."""

    async def fetch(self, name: str, /, **values: Any) -> Sequence[Any]:
        """Run a statement."""
        connection = self._connection
        if hasattr(connection, "sync_session"):
            connection = await connection.connection()
        result = await connection.exec_driver_sql(*self._for_dialect(connection, name, values))
        rows: Sequence[Any] = result.fetchall() if result.returns_rows else []
        return rows

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[Any]:
        """Open a savepoint."""
        async with self._connection.begin_nested():
            yield


def _alchemy_connection(target: Any) -> Any:
    return target.connection() if hasattr(target, "get_bind") else target


RUNNERS: dict[str, Callable[[Any, Database], Any]] = {
    "asyncpg": AsyncpgRunner,
    "psycopg": PsycopgRunner,
    "psycopg async": AsyncPsycopgRunner,
    "sqlalchemy": AlchemyRunner,
    "sqlalchemy async": AsyncAlchemyRunner,
}

_CLASSES = {
    ("asyncpg", "Connection"): "asyncpg",
    ("asyncpg", "PoolConnectionProxy"): "asyncpg",
    ("psycopg", "Connection"): "psycopg",
    ("psycopg", "AsyncConnection"): "psycopg async",
    ("sqlalchemy", "Connection"): "sqlalchemy",
    ("sqlalchemy", "Session"): "sqlalchemy",
    ("sqlalchemy", "AsyncConnection"): "sqlalchemy async",
    ("sqlalchemy", "AsyncSession"): "sqlalchemy async",
}


def kind_of(connection: Any) -> str | None:
    """Return the runner of a connection by the class it is or derives from, or None."""
    for base in type(connection).__mro__:
        kind = _CLASSES.get((base.__module__.partition(".")[0], base.__name__))
        if kind is not None:
            return kind
    return None
