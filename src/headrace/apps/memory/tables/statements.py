"""The statements of memory: `queries/NAME.sql`, one per file, run by name on connections of the store's database.

A statement names its parameters `%(name)s`, which become `$1 … $n`, and its tables `{schema}.table`.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import asyncpg

from headrace import App, StoreUnavailableError, StoreVersionError

T = TypeVar("T")

_PARAMETER = re.compile(r"%\((\w+)\)s")
_COMMENT = re.compile(r"--[^\n]*")
#: What another try mends: ours take locks in one order, other programs may not.
_AGAIN = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.exceptions.InvalidCachedStatementError,
    asyncpg.exceptions.OutdatedSchemaCacheError,
)
_TRIES, _FIRST_PAUSE = 5, 0.01


@dataclass(frozen=True, slots=True)
class Query:
    """One statement, with its parameters in their order."""

    text: str
    parameters: tuple[str, ...]

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """Return `values` in their order; a missing one is a KeyError."""
        return [values[name] for name in self.parameters]


def read_sql(path: str, schema: str) -> str:
    """Return the text of an SQL file of this package. `schema` was checked with the settings: it needs no escape."""
    return (files(__package__) / path).read_text("utf-8").replace("{schema}", f'"{schema}"')


@cache
def load_query(name: str, schema: str) -> Query:
    """Return the statement `queries/NAME.sql` for `schema`."""
    text = _COMMENT.sub("", read_sql(f"queries/{name}.sql", schema)).strip()
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbers = {parameter: f"${index}" for index, parameter in enumerate(names, 1)}
    return Query(_PARAMETER.sub(lambda match: numbers[match[1]], text), names)


class Statements:
    """Runs statements: each in a transaction of its own, or all in the one of `connection`."""

    def __init__(self, app: App, connection: Any = None) -> None:
        self.app = app
        self._connection = connection

    @property
    def schema(self) -> str:
        """The schema of the tables, by the settings: those are read when they are needed, not when tables are named."""
        return self.app.settings.memory.schema

    @property
    def _pooled(self) -> bool:
        """Whether a pooler in transaction mode lies between: a statement is prepared and run in one transaction."""
        return self.app.settings.queue.pooled

    async def fetch(self, name: str, /, **values: Any) -> list[Any]:
        """Run one statement and return its rows."""
        if self._connection is not None:
            return await self._run(self._connection, name, values)
        if self._pooled:
            return await self.together(lambda statements: statements.fetch(name, **values))

        async def alone() -> list[Any]:
            async with self.app.database() as connection:
                return await self._run(connection, name, values)

        return await _persist(alone)

    async def fetch_one(self, name: str, /, **values: Any) -> Any:
        """Run a statement that gives at most one row, and return it or None."""
        rows = await self.fetch(name, **values)
        return rows[0] if rows else None

    async def together(self, work: Callable[[Statements], Awaitable[T]]) -> T:
        """Run `work` in one transaction, which an error takes back; it may be called again after a deadlock."""

        async def whole() -> T:
            async with self._lent() as connection, connection.transaction():
                return await work(Statements(self.app, connection))

        # In the caller's transaction it is a savepoint, and the caller's to try again: nothing is known of the rest.
        return await (whole() if self._connection is not None else _persist(whole))

    async def run_script(self, text: str) -> None:
        """Run several statements without parameters, inside `together`."""
        await self._connection.execute(text)

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Any]:
        given = nullcontext(self._connection) if self._connection is not None else self.app.database()
        async with given as connection:
            yield connection

    async def _run(self, connection: Any, name: str, values: Mapping[str, Any]) -> list[Any]:
        query = load_query(name, self.schema)
        try:
            rows: list[Any] = await connection.fetch(query.text, *query.arguments(values))
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
            raise StoreVersionError(
                f"The tables of memory are not in the schema {self.schema}: start `headrace memory run`, which makes "
                "them, or correct [memory] schema"
            ) from error
        return rows


async def _persist(work: Callable[[], Awaitable[T]]) -> T:
    for turn in range(_TRIES):
        try:
            return await work()
        except _AGAIN as error:
            if turn + 1 == _TRIES:
                raise StoreUnavailableError(f"The tables of memory are fought for ({type(error).__name__})") from error
            await asyncio.sleep(_FIRST_PAUSE * 2**turn * random.random())  # noqa: S311 - spreads rivals, no secret
    raise AssertionError("unreachable")
