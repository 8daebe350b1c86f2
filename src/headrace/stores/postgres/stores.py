"""Opening the PostgreSQL store: one database, all ports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

from headrace.ports.clock import Clock
from headrace.ports.stores import EventStores, Stores
from headrace.stores.postgres.admission import PostgresAdmission
from headrace.stores.postgres.audit_store import PostgresAuditStore
from headrace.stores.postgres.batch_store import PostgresBatchStore
from headrace.stores.postgres.budget_store import PostgresBudgetStore
from headrace.stores.postgres.call_store import PostgresCallStore
from headrace.stores.postgres.control_store import PostgresControlStore
from headrace.stores.postgres.database import Database, DatabaseOptions
from headrace.stores.postgres.feed_store import PostgresFeedStore
from headrace.stores.postgres.foreign import PostgresForeignIntake
from headrace.stores.postgres.handle_store import PostgresHandleStore
from headrace.stores.postgres.inbox import PostgresInbox
from headrace.stores.postgres.inspect import PostgresInspect
from headrace.stores.postgres.job_store import PostgresJobStore
from headrace.stores.postgres.limiter import PostgresLimiter
from headrace.stores.postgres.memo_store import PostgresMemoStore
from headrace.stores.postgres.message_log import PostgresMessageLog
from headrace.stores.postgres.migrate import check_version
from headrace.stores.postgres.name_store import PostgresNameStore
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.outbox import PostgresOutbox
from headrace.stores.postgres.own_tables import PostgresOwnTables
from headrace.stores.postgres.run_store import PostgresRunStore
from headrace.stores.postgres.schedule_store import PostgresScheduleStore
from headrace.stores.postgres.session_store import PostgresSessionStore
from headrace.stores.postgres.signal_store import PostgresSignalStore
from headrace.stores.postgres.token_store import PostgresTokenStore
from headrace.stores.postgres.workflow_store import PostgresWorkflowStore

#: Connections of a worker's heartbeat, which must not wait for the pools.
HEARTBEAT = 1


async def open_postgres_stores(  # noqa: PLR0913 - every way to reach a database, keyword-only
    dsn: str,
    *,
    schema: str = "headrace",
    max_pool_size: int = 10,
    pooled: bool = False,
    listen: bool = True,
    listen_dsn: str | None = None,
    auto_migrate: bool = False,
    clock: Clock | None = None,
    lock_timeout: timedelta | None = None,
) -> Stores:
    """Open the store in `schema` of the database at `dsn` and check its version.

    `max_pool_size` bounds all connections together: the pools of hot statements and of others with at least one each,
    the one that listens, and the one of a worker's heartbeat; below 4 it cannot hold. `pooled` is for a pooler in
    transaction mode: no named statements, no session settings, and LISTEN only on `listen_dsn`, a way past the pooler.
    `auto_migrate` fills an empty database. `clock` replaces the database's clock, for tests. Raises
    StoreUnavailableError when the database cannot be reached, StoreVersionError when its schema is not the one this
    version needs.

    >>> stores = await open_postgres_stores("postgresql://localhost/app")  # doctest: +SKIP
    """
    options = DatabaseOptions(dsn, schema=schema, max_pool_size=max_pool_size, pooled=pooled)
    if lock_timeout is not None:
        options = replace(options, lock_timeout=lock_timeout)
    hears = listen and (listen_dsn is not None or not pooled)
    hot_size, size = _pool_sizes(max_pool_size - HEARTBEAT - int(hears))
    database = Database(replace(options, max_pool_size=size), clock)
    hot = Database(replace(options, max_pool_size=hot_size, pinned=True), clock)
    try:
        await check_version(database, auto_migrate=auto_migrate)
    except BaseException:
        await database.close()
        raise
    notifier = PostgresNotifier(database, listen=listen, listen_dsn=listen_dsn)

    async def close() -> None:
        await notifier.close()
        await hot.close()
        await database.close()

    return Stores(
        jobs=PostgresJobStore(database, hot, notifier),
        batches=PostgresBatchStore(database, hot),
        sessions=PostgresSessionStore(database),
        control=PostgresControlStore(database),
        inspect=PostgresInspect(
            database, _notes(pooled=pooled, listening=notifier.listening), hears=lambda: notifier.listening
        ),
        memo=PostgresMemoStore(database),
        schedules=PostgresScheduleStore(database),
        notifier=notifier,
        private_sessions=partial(_private_sessions, replace(options, max_pool_size=1), clock),
        foreign=PostgresForeignIntake(database),
        close=close,
        admission=PostgresAdmission(database, hot),
        limiter=PostgresLimiter(database),
        calls=PostgresCallStore(hot),
        budgets=PostgresBudgetStore(database),
        names=PostgresNameStore(database),
        runs=PostgresRunStore(database, hot, notifier),
        workflows=PostgresWorkflowStore(database),
        signals=PostgresSignalStore(database, notifier),
        feeds=PostgresFeedStore(database, hot, notifier),
        tokens=PostgresTokenStore(database),
        audit=PostgresAuditStore(database),
        events=_event_stores(database, hot, notifier),
        own_tables=PostgresOwnTables(database),
    )


def _event_stores(database: Database, hot: Database, notifier: PostgresNotifier) -> EventStores:
    return EventStores(
        outbox=PostgresOutbox(database, hot, notifier),
        inbox=PostgresInbox(database, notifier),
        log=PostgresMessageLog(database, notifier),
        handles=PostgresHandleStore(database, notifier),
    )


@asynccontextmanager
async def _private_sessions(options: DatabaseOptions, clock: Clock | None) -> AsyncIterator[PostgresSessionStore]:
    private = Database(options, clock)
    try:
        yield PostgresSessionStore(private)
    finally:
        await private.close()


def _pool_sizes(connections: int) -> tuple[int, int]:
    """Return how many connections the hot statements and all others have, at least one each."""
    hot = max(1, connections // 2)
    return hot, max(1, connections - hot)


def _notes(*, pooled: bool, listening: bool) -> list[str]:
    notes = ["hints by LISTEN" if listening else "poll-only: no LISTEN, so work is noticed by the poll"]
    return [*notes, "behind a transaction pooler"] if pooled else notes
