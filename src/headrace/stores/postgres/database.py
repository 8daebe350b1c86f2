"""Statements on the database: connections, transactions, and the retries that callers never see.

Deadlocks and serialization failures are tried again inside; every other fault of the driver becomes an error of
Headrace. Behind a pooler in transaction mode (`pooled`) each statement runs in a transaction of its own, because
the driver prepares and executes in two messages that the pooler may otherwise send to different servers.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import asyncpg

from headrace.model.errors import StoreUnavailableError
from headrace.ports.clock import Clock
from headrace.stores.postgres.connection import Connection, PreparedConnection
from headrace.stores.postgres.faults import TRY_AGAIN, describe, sorted_faults
from headrace.stores.postgres.pool import Pool
from headrace.stores.postgres.queries import check_schema, load_query, read_sql
from headrace.stores.postgres.servers import Servers

T = TypeVar("T")
Row = asyncpg.Record

#: A statement planned on an empty table keeps its plan when 20,000 jobs arrive; these leave it only one. The same
#: as in `queries/pin_plans.sql`; see docs/decisions/0001-hot-path.md.
PINNED_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_sort": "off",
}

#: Seconds for a file of statements: the indexes of large tables take their time. What starts a migration gives it as
#: much: see `deploy/`.
SCRIPT_TIMEOUT = 86_400.0
_TRIES = 10
_FIRST_PAUSE = 0.01


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """How to reach the database. Durations bound a wait each; none of them is endless."""

    dsn: str
    schema: str = "headrace"
    max_pool_size: int = 10
    #: A pooler in transaction mode lies between: no named statements, no settings of the session.
    pooled: bool = False
    #: For the hot statements: one plan each, a nested loop through the keys, whatever the statistics say.
    pinned: bool = False
    #: For a connection to be made, and for a free one of the pool.
    connect_timeout: timedelta = timedelta(seconds=10)
    #: For a key or row that another transaction holds.
    lock_timeout: timedelta = timedelta(seconds=5)
    #: For the answer to one statement; finds links that died silently.
    statement_timeout: timedelta = timedelta(seconds=30)


class Transaction:
    """One open transaction: statements by name, each with its keyword arguments as parameters."""

    __slots__ = ("_connection", "_now", "_schema")

    def __init__(self, connection: Connection, schema: str, now: datetime | None) -> None:
        self._connection, self._schema, self._now = connection, schema, now

    async def fetch(self, name: str, /, **values: Any) -> list[Row]:
        """Run the statement `queries/NAME.sql` and return its rows."""
        query = load_query(name, self._schema)
        values.setdefault("now", self._now)
        rows: list[Row] = await self._connection.fetch(query.numbered, *query.arguments(values))
        return rows

    async def fetch_one(self, name: str, /, **values: Any) -> Row | None:
        """Run a statement that gives at most one row."""
        rows = await self.fetch(name, **values)
        return rows[0] if rows else None

    @property
    def connection(self) -> Connection:
        """The driver's connection, for writes of the user's own in this transaction."""
        return self._connection

    async def run_script(self, path: str) -> None:
        """Run a file of several statements without parameters, such as a migration; it may take a day."""
        await self._connection.execute(read_sql(path, self._schema), timeout=SCRIPT_TIMEOUT)


class Database:
    """The pool and the ways to run statements on it. `clock` replaces the database's clock, for tests only."""

    def __init__(self, options: DatabaseOptions, clock: Clock | None = None) -> None:
        check_schema(options.schema)
        self.options, self.schema, self._clock = options, options.schema, clock
        self._servers = Servers(options.dsn)
        wait = options.connect_timeout.total_seconds()
        self._pool = Pool(self.connect, size=options.max_pool_size, wait=wait)

    def now(self) -> datetime | None:
        """Return the injected time, or None: the database's own clock decides."""
        return self._clock.now() if self._clock else None

    async def fetch(self, name: str, /, **values: Any) -> list[Row]:
        """Run one statement in a transaction of its own and return its rows."""
        if self.options.pooled:
            return await self.run(lambda tx: tx.fetch(name, **values))

        async def alone(connection: Connection) -> list[Row]:
            return await Transaction(connection, self.schema, self.now()).fetch(name, **values)

        return await self._persist(alone)

    async def fetch_one(self, name: str, /, **values: Any) -> Row | None:
        """Run one statement that gives at most one row."""
        rows = await self.fetch(name, **values)
        return rows[0] if rows else None

    async def run(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one transaction; it may be called again after a deadlock, so it must only use `tx`."""

        async def whole(connection: Connection) -> T:
            async with connection.transaction(isolation="read_committed"):
                transaction = Transaction(connection, self.schema, self.now())
                if self.options.pooled:
                    await self._bound(transaction)
                return await work(transaction)

        return await self._persist(whole)

    async def _bound(self, transaction: Transaction) -> None:
        """Set for this transaction what other connections have set for their session."""
        lock, idle = self.options.lock_timeout, self.options.statement_timeout
        await transaction.fetch("bound_transaction", lock_timeout=_milliseconds(lock), idle_timeout=_milliseconds(idle))
        if self.options.pinned:
            await transaction.fetch("pin_plans")

    async def _persist(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        for turn in range(_TRIES):
            try:
                with sorted_faults():
                    async with self._pool.connection() as connection:
                        return await work(connection)
            except StoreUnavailableError as error:
                if turn + 1 == _TRIES or not isinstance(error.__cause__, TRY_AGAIN):
                    raise
            await asyncio.sleep(_FIRST_PAUSE * 2**turn * random.random())  # noqa: S311 - spreads rivals, no secret
        raise AssertionError("unreachable")

    def lend(self) -> AbstractAsyncContextManager[Connection]:
        """Lend a connection of the pool for statements that are not the store's; the driver's faults pass through."""
        return self._pool.connection()

    async def connect(self, *, dsn: str | None = None) -> Connection:
        """Return a new connection of its own, to `dsn` or the store's; the caller closes it."""
        options = self.options
        direct = dsn is not None or not options.pooled
        servers = self._servers if dsn is None else Servers(dsn)
        try:
            connection = await servers.connect(
                timeout=options.connect_timeout.total_seconds(),
                command_timeout=options.statement_timeout.total_seconds(),
                statement_cache_size=0 if options.pooled else 200,
                connection_class=PreparedConnection,
                server_settings=self._session_settings() if direct else {},
            )
        except ValueError as error:  # the driver's word for a DSN it cannot read
            raise StoreUnavailableError(f"HEADRACE_URL is not an address of PostgreSQL ({describe(error)}).") from error
        _notice_dead_links(connection)
        return connection

    async def check(self, connection: Connection) -> None:
        """Ask the server at the other end of `connection` for a sign of life."""
        await connection.fetch(load_query("check_link", self.schema).numbered)

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.close()

    def _session_settings(self) -> dict[str, str]:
        """Bounds that a pooler would refuse as startup parameters; `run` sets them per transaction there."""
        settings = {
            "application_name": "headrace",
            "jit": "off",
            # What locks first and then counts must see what was committed while it waited.
            "default_transaction_isolation": "read committed",
            "lock_timeout": _milliseconds(self.options.lock_timeout),
            "idle_in_transaction_session_timeout": _milliseconds(self.options.statement_timeout),
        }
        return {**settings, **PINNED_PLANS} if self.options.pinned else settings


def _milliseconds(duration: timedelta) -> str:
    return str(int(duration.total_seconds() * 1000))


def _notice_dead_links(connection: Connection) -> None:
    """Let the kernel find within about 15 s that the peer is gone; without it a cut link looks merely slow."""
    transport = getattr(connection, "_transport", None)
    link = transport.get_extra_info("socket") if transport else None
    if link is None or link.family not in (socket.AF_INET, socket.AF_INET6):
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 14_000)):
        if hasattr(socket, option):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
