"""Jobs enqueued inside the caller's own transaction: they exist iff it commits, and start at once when it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from headrace import App
from headrace.model.errors import ConflictError, InvalidInputError
from tests.faults.site import Site
from tests.faults.tasks import effect
from tests.waiting import wait_until

#: So long that only a hint explains a job that starts.
POLL = timedelta(minutes=5)


@asynccontextmanager
async def by_asyncpg(dsn: str) -> AsyncIterator[Any]:
    """Connect with asyncpg."""
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


@asynccontextmanager
async def by_psycopg(dsn: str) -> AsyncIterator[Any]:
    """Connect with psycopg, whose connections begin a transaction with their first statement."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def by_sqlalchemy(dsn: str) -> AsyncIterator[Any]:
    """Connect with SQLAlchemy over asyncpg."""
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(dsn))
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


@asynccontextmanager
async def by_session(dsn: str) -> AsyncIterator[Any]:
    """Open a session of SQLAlchemy."""
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(dsn))
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()


WAYS = [by_asyncpg, by_psycopg, by_sqlalchemy, by_session]


@pytest.fixture
async def working(site: Site, app: App, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    """Open the app and work it in this process, by hints alone."""
    settings = site.settings()
    app.settings = replace(settings, worker=replace(settings.worker, poll_interval=POLL))
    async with app.worker() as worker:
        # The first claims are made, and nothing but a hint brings another.
        await wait_until(lambda: worker.quiet)
        yield app


async def job_count(app: App) -> int:
    """Return how many jobs there are, in any state."""
    return len(await app.runtime.stores.inspect.list_jobs(limit=100))


@pytest.mark.parametrize("way", WAYS)
async def test_a_job_exists_iff_the_transaction_commits(site: Site, working: App, way: Any) -> None:
    """Nothing runs before the commit; after it the job starts by its hint, and after a rollback there is no job."""
    async with way(site.server.dsn) as connection:
        with pytest.raises(RuntimeError, match="changed my mind"):
            async with working.transaction(connection):
                await effect.options(connection=connection).enqueue(1)
                raise RuntimeError("changed my mind")
        assert await job_count(working) == 0

        async with working.transaction(connection):
            job = await effect.options(connection=connection).enqueue(2)
            assert await job_count(working) == 0
        assert await job.result(10) == 2
    assert set(site.counts("effect")) == {2}


@pytest.mark.parametrize("way", WAYS)
async def test_the_callers_rows_and_the_job_live_and_die_together(site: Site, working: App, way: Any) -> None:
    """A row of the caller and the job that goes with it are both there, or neither is."""
    table = f"orders_{uuid4().hex}"
    async with way(site.server.dsn) as connection:
        await run(connection, f"CREATE TABLE {table} (id int)")
        for number in (1, 2):
            try:
                async with working.transaction(connection):
                    await run(connection, f"INSERT INTO {table} VALUES ({number})", commit=False)
                    await effect.options(connection=connection, key=f"order-{number}").enqueue(number)
                    if number == 1:
                        raise RuntimeError
            except RuntimeError:
                continue
    await wait_until(lambda: site.effects("effect"))
    async with by_asyncpg(site.server.dsn) as reader:
        assert [row["id"] for row in await reader.fetch(f"SELECT id FROM {table}")] == [2]
        await reader.execute(f"DROP TABLE {table}")
    assert set(site.counts("effect")) == {2}


async def run(connection: Any, statement: str, *, commit: bool = True) -> None:
    """Run a statement of the caller's on any kind of connection."""
    if isinstance(connection, asyncpg.Connection | psycopg.AsyncConnection):
        await connection.execute(statement)
        return
    from sqlalchemy import text

    await connection.execute(text(statement))
    if commit:
        await connection.commit()


async def test_a_session_of_sqlalchemy_hints_after_its_own_commit(site: Site, working: App) -> None:
    """Without `app.transaction` a session's commit is noticed as well; a rollback hints nothing."""
    async with by_session(site.server.dsn) as session:
        await effect.options(connection=session).enqueue(1)
        await session.rollback()
        job = await effect.options(connection=session).enqueue(2)
        await session.commit()
        assert await job.result(10) == 2
    assert set(site.counts("effect")) == {2}


async def test_a_transaction_inside_another_is_a_savepoint(site: Site, working: App) -> None:
    """What the inner one rolls back is gone, the rest is there, and the outermost commit hints for all of it."""
    async with by_asyncpg(site.server.dsn) as connection:
        async with working.transaction(connection):
            with pytest.raises(RuntimeError):
                async with working.transaction(connection):
                    await effect.options(connection=connection).enqueue(1)
                    raise RuntimeError
            async with working.transaction(connection):
                inner = await effect.options(connection=connection).enqueue(2)
            outer = await effect.options(connection=connection).enqueue(3)
            assert await job_count(working) == 0
        assert [await inner.result(10), await outer.result(10)] == [2, 3]
    assert set(site.counts("effect")) == {2, 3}


async def test_a_bare_connection_waits_for_the_poll(site: Site, app: App) -> None:
    """On a connection whose commit nobody sees the job is picked up by the next poll."""
    site.start_workers(1)
    async with app, by_asyncpg(site.server.dsn) as connection:
        async with connection.transaction():
            job = await effect.options(connection=connection).enqueue(3)
        assert await job.result(10) == 3


async def test_a_key_holds_across_transactions(site: Site, app: App) -> None:
    """A key used in one committed transaction gives the same job in the next; another body is a conflict."""
    async with app, by_asyncpg(site.server.dsn) as connection:
        async with app.transaction(connection):
            first = await effect.options(connection=connection, key="k").enqueue(1)
        async with app.transaction(connection):
            assert (await effect.options(connection=connection, key="k").enqueue(1)).id == first.id
            with pytest.raises(ConflictError):
                await effect.options(connection=connection, key="k").enqueue(2)
            # The conflict has left the caller's transaction usable.
            assert await connection.fetchval("SELECT 1") == 1
        assert await job_count(app) == 1


async def test_what_is_no_connection_is_refused(site: Site, app: App) -> None:
    """An object that is no connection is named, with the kinds that are understood."""
    async with app:
        with pytest.raises(InvalidInputError, match="asyncpg or psycopg"):
            await effect.options(connection=object()).enqueue(1)
        with pytest.raises(InvalidInputError, match=r"^connection"):
            async with app.transaction(object()):
                raise AssertionError("unreachable")
        with pytest.raises(InvalidInputError, match="async"), psycopg.connect(site.server.dsn) as blocking:
            async with app.transaction(blocking):
                raise AssertionError("unreachable")
