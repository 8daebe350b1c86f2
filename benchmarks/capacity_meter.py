"""A schema whose connections are known one by one, and what work on it costs: commits, log, processor time, rows.

Counts and processor time, not seconds: they say the same on a machine that others use as well.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from headrace.model.session import NewSession, ProcessId
from headrace.stores.postgres.batch_store import PostgresBatchStore
from headrace.stores.postgres.call_store import PostgresCallStore
from headrace.stores.postgres.database import Database, DatabaseOptions
from headrace.stores.postgres.job_store import PostgresJobStore
from headrace.stores.postgres.migrate import check_version
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.session_store import PostgresSessionStore

DAY = timedelta(days=1)
#: Next transaction number, end of the log, transactions of this database, tuples that died or were made here.
COUNTS = """SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS commits,
    (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS wal,
    (SELECT wal_fpi FROM pg_stat_wal) AS pages,
    (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS transactions,
    (SELECT sum(n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables) AS dead"""
FLUSH = "SELECT pg_stat_force_next_flush()"
#: Table and indexes of what waits and of what ended, in bytes.
SIZES = """SELECT c.relname AS name, pg_relation_size(c.oid) AS heap, pg_indexes_size(c.oid) AS indexes
  FROM pg_class AS c WHERE c.relkind = 'r' AND c.relname IN ('jobs', 'finished_jobs', 'calls', 'answers', 'steps')
    AND c.relnamespace = $1::regnamespace"""


@dataclass(frozen=True, slots=True)
class Costs:
    """What some work cost, in all or a call or a job."""

    #: transactions that took a number: those that wrote, each of which waits for the disk, and hints, which do not
    commits: float
    #: all transactions, those that only read included
    transactions: float
    wal_bytes: float
    #: pages written whole into the log, because they were touched first after a checkpoint
    full_pages: float
    #: processor microseconds of the servers of our connections
    server_us: float
    #: processor microseconds of this process
    client_us: float
    #: row versions that vacuum has to take away
    dead_rows: float

    def __sub__(self, other: Costs) -> Costs:
        return Costs(*(mine - theirs for mine, theirs in zip(self.all(), other.all(), strict=True)))

    def __truediv__(self, count: float) -> Costs:
        return Costs(*(figure / count for figure in self.all()))

    def all(self) -> tuple[float, ...]:
        """Return the figures in order."""
        return tuple(asdict(self).values())


class Site:
    """Stores on two connections, one for the hot statements, and a third that looks at the counters."""

    def __init__(self, database: Database, hot: Database, watch: Any) -> None:
        self._databases, self.watch = (database, hot), watch
        notifier = PostgresNotifier(database, listen=False)
        self.jobs = PostgresJobStore(database, hot, notifier)
        self.batches = PostgresBatchStore(database, hot)
        self.calls = PostgresCallStore(hot)
        self.sessions = PostgresSessionStore(database)
        self.session = NewSession(ProcessId("me", 1, 1), "me", {"default": 100}, DAY)
        self.closers = (notifier, database, hot)

    async def look(self) -> Costs:
        """Return the counters of now, all reported: a server otherwise reports once a second."""
        pids = []
        for database in self._databases:
            async with database.lend() as connection:
                await connection.execute(FLUSH)
                pids.append(connection.get_server_pid())
        row = await self.watch.fetchrow(COUNTS)
        server, client = sum(map(_server_us, pids)), time.process_time_ns() / 1000
        return Costs(
            row["commits"], row["transactions"], row["wal"], row["pages"], server, client, row["dead"] or 0,
        )  # fmt: skip

    async def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the bytes of table and indexes by the name of the table."""
        rows = await self.watch.fetch(SIZES, self._databases[0].schema)
        return {row["name"]: (row["heap"], row["indexes"]) for row in rows}


def _server_us(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1000


@asynccontextmanager
async def open_site(dsn: str, schema: str = "capacity") -> AsyncIterator[Site]:
    """Open an empty, migrated schema with a session that lives."""
    options = DatabaseOptions(dsn, schema=schema, max_pool_size=1)
    database, hot = Database(options), Database(replace(options, pinned=True))
    await check_version(database, auto_migrate=True)
    watch = await asyncpg.connect(dsn, server_settings={"jit": "off"})
    site = Site(database, hot, watch)
    try:
        await site.sessions.register_session(site.session)
        yield site
    finally:
        await watch.close()
        for closer in site.closers:
            await closer.close()
