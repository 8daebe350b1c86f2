"""Transactional enqueue: on the caller's own connection the jobs exist exactly when its transaction commits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from headrace import App
from headrace.model.batch import NewBatch
from headrace.model.errors import ConflictError, InvalidInputError, KeyHeldError, StoreUnavailableError
from headrace.model.job import JobSpec, NewJob
from headrace.ports.foreign_intake import ForeignIntake
from headrace.ports.stores import Stores
from headrace.settings import load_settings
from headrace.stores.postgres.intake import group_by_spec
from tests.integration.postgres_setup import ARGS, SPEC, open_test_stores, schema_stores, shared_server

Ending = Callable[[], Any]
Opened = tuple[Any, Ending, Ending]


def address(driver: str) -> str:
    """Return the SQLAlchemy URL of the test server for a driver."""
    return f"postgresql+{driver}://headrace@/postgres?host={shared_server().root}"


@asynccontextmanager
async def on_asyncpg() -> AsyncIterator[Opened]:
    """An asyncpg connection in a transaction."""
    connection = await asyncpg.connect(shared_server().dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection, transaction.commit, transaction.rollback
    await connection.close()


@asynccontextmanager
async def on_asyncpg_pool() -> AsyncIterator[Opened]:
    """A connection lent by asyncpg's pool."""
    async with asyncpg.create_pool(shared_server().dsn, min_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield connection, transaction.commit, transaction.rollback


@asynccontextmanager
async def on_psycopg() -> AsyncIterator[Opened]:
    """A synchronous psycopg connection, as scripts and Django have it."""
    with psycopg.connect(shared_server().dsn, row_factory=psycopg.rows.dict_row) as connection:
        yield connection, connection.commit, connection.rollback
        connection.rollback()


@asynccontextmanager
async def on_async_psycopg() -> AsyncIterator[Opened]:
    """An asynchronous psycopg connection."""
    async with await psycopg.AsyncConnection.connect(shared_server().dsn) as connection:
        yield connection, connection.commit, connection.rollback
        await connection.rollback()


@asynccontextmanager
async def on_alchemy() -> AsyncIterator[Opened]:
    """A synchronous SQLAlchemy connection."""
    engine = create_engine(address("psycopg"))
    with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    engine.dispose()


@asynccontextmanager
async def on_alchemy_session() -> AsyncIterator[Opened]:
    """A synchronous SQLAlchemy session."""
    engine = create_engine(address("psycopg"))
    with Session(engine) as session:
        yield session, session.commit, session.rollback
    engine.dispose()


@asynccontextmanager
async def on_async_alchemy(driver: str = "asyncpg") -> AsyncIterator[Opened]:
    """An asynchronous SQLAlchemy connection."""
    engine = create_async_engine(address(driver))
    async with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    await engine.dispose()


@asynccontextmanager
async def on_async_alchemy_session(driver: str = "asyncpg") -> AsyncIterator[Opened]:
    """An asynchronous SQLAlchemy session."""
    engine = create_async_engine(address(driver))
    async with AsyncSession(engine) as session:
        yield session, session.commit, session.rollback
    await engine.dispose()


OPENERS: dict[str, Callable[[], AbstractAsyncContextManager[Opened]]] = {
    "asyncpg": on_asyncpg,
    "asyncpg pool": on_asyncpg_pool,
    "psycopg": on_psycopg,
    "psycopg async": on_async_psycopg,
    "sqlalchemy": on_alchemy,
    "sqlalchemy session": on_alchemy_session,
    "sqlalchemy async": on_async_alchemy,
    "sqlalchemy async session": on_async_alchemy_session,
    "sqlalchemy async psycopg": lambda: on_async_alchemy("psycopg"),
    "sqlalchemy async session psycopg": lambda: on_async_alchemy_session("psycopg"),
}


@pytest.fixture(params=list(OPENERS))
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    """Open a caller's connection of each kind, with its commit and rollback."""
    async with OPENERS[request.param]() as found:
        yield found


@pytest.fixture
async def stores() -> AsyncIterator[Stores]:
    """Open stores by the server's clock."""
    async with open_test_stores(None) as found:
        yield found


def intake(stores: Stores) -> ForeignIntake:
    """Return the port of transactional enqueue."""
    assert stores.foreign is not None
    return stores.foreign


async def end(ending: Ending) -> None:
    """Commit or roll back, whether that is to be awaited or not."""
    answer = ending()
    if answer is not None:
        await answer


def new_job(key: str | None = None, body: str = "") -> NewJob:
    """Return a job to insert."""
    return NewJob(SPEC, ARGS, key=key, body_hash=body)


async def known(stores: Stores, ids: list[UUID]) -> int:
    """Return how many of `ids` exist for everyone else."""
    return len(await stores.inspect.known_jobs(ids))


async def test_jobs_exist_after_the_commit_and_not_before(stores: Stores, opened: Opened) -> None:
    """Two specifications, one of them keyed: nobody sees the jobs before the caller commits, everybody after."""
    connection, commit, _ = opened
    jobs = [new_job(), NewJob(JobSpec("other", "mail", priority=0), ARGS), new_job(key="k", body="1")]
    ids = await intake(stores).insert_jobs_on(connection, jobs)
    assert await known(stores, ids) == 0
    await end(commit)

    assert ids == [job.id for job in jobs]
    assert await known(stores, ids) == 3
    view = await stores.inspect.get_job(ids[1])
    assert view is not None
    assert (view.task, view.queue, view.args) == ("other", "mail", {"args": [1], "kwargs": {}})


async def test_jobs_never_existed_after_a_rollback(stores: Stores, opened: Opened) -> None:
    """The caller rolls back: no job, and its key is free for another body."""
    connection, _, rollback = opened
    ids = await intake(stores).insert_jobs_on(connection, [new_job(), new_job(key="k", body="1")])
    await end(rollback)

    assert await known(stores, ids) == 0
    again = await stores.jobs.insert_jobs([new_job(key="k", body="2")])
    assert await known(stores, again) == 1


async def test_a_key_that_is_known_returns_its_job(stores: Stores, opened: Opened) -> None:
    """The same key and body give the stored id and insert nothing."""
    connection, commit, _ = opened
    stored = await stores.jobs.insert_jobs([new_job(key="k", body="1")])
    assert await intake(stores).insert_jobs_on(connection, [new_job(key="k", body="1")]) == stored
    await end(commit)


async def test_a_conflict_leaves_nothing_behind_and_the_transaction_usable(stores: Stores, opened: Opened) -> None:
    """Another body raises ConflictError; the caller goes on and commits, and neither job nor key of that call stays."""
    connection, commit, _ = opened
    await stores.jobs.insert_jobs([new_job(key="known", body="1")])
    refused = [new_job(key="free", body="1"), new_job(key="known", body="2"), new_job()]
    with pytest.raises(ConflictError, match="known"):
        await intake(stores).insert_jobs_on(connection, refused)
    kept = await intake(stores).insert_jobs_on(connection, [new_job()])
    await end(commit)

    assert await known(stores, [job.id for job in refused]) == 0
    assert await known(stores, kept) == 1
    assert await known(stores, await stores.jobs.insert_jobs([new_job(key="free", body="other")])) == 1


async def test_a_key_held_by_another_transaction_is_waited_for_a_bounded_time(opened: Opened) -> None:
    """A second submitter waits no longer than the lock timeout, is told why, and keeps its own setting."""
    connection, commit, _ = opened
    async with open_test_stores(None, lock_timeout=timedelta(milliseconds=100)) as stores, on_asyncpg() as holder:
        await intake(stores).insert_jobs_on(holder[0], [new_job(key="k", body="1")])
        with pytest.raises(KeyHeldError, match="idempotency key 'k'"):
            await intake(stores).insert_jobs_on(connection, [new_job(key="k", body="1")])
        ids = await intake(stores).insert_jobs_on(connection, [new_job(key="other", body="1")])
        await end(commit)
        assert await known(stores, ids) == 1


async def test_a_json_codec_of_the_caller_changes_nothing(stores: Stores) -> None:
    """A connection that encodes json itself, as many applications set it, inserts the same arguments."""
    async with on_asyncpg() as (connection, commit, _):
        for kind in ("json", "jsonb"):
            await connection.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        ids = await intake(stores).insert_jobs_on(connection, [new_job(), new_job(key="k", body="1")])
        assert await intake(stores).insert_jobs_on(connection, [new_job(key="k", body="1")]) == ids[1:]
        await commit()
    for job_id in ids:
        view = await stores.inspect.get_job(job_id)
        assert view is not None
        assert view.args == json.loads(ARGS)


async def test_a_held_key_has_an_error_of_its_own() -> None:
    """Single jobs, lists and batches, empty or not: KeyHeldError, which a client does not send again blindly."""
    bounded = schema_stores(lock_timeout=timedelta(milliseconds=100))
    async with bounded as (schema, stores), on_asyncpg() as holder:
        await intake(stores).insert_jobs_on(holder[0], [new_job(key="k", body="1")])
        await holder[0].execute(
            f"""INSERT INTO "{schema}".idempotency_keys (scope, key, id, body_hash)
            VALUES ('batch:work', 'k', gen_random_uuid(), '1')"""
        )
        with pytest.raises(KeyHeldError, match=r"'k'.*Commit or roll back") as caught:
            await stores.jobs.insert_jobs([new_job(key="k", body="1")])
        with pytest.raises(KeyHeldError, match="One of the idempotency keys"):
            await stores.jobs.insert_jobs([new_job(key="free", body="1"), new_job(key="k", body="1")])
        for items in (None, [], [ARGS]):
            with pytest.raises(KeyHeldError, match=r"'k'.*Commit or roll back"):
                await stores.batches.create_batch(NewBatch(SPEC, key="k", body_hash="1"), items)
        assert (caught.value.code, caught.value.transient) == ("key_held", False)
        assert await known(stores, await stores.jobs.insert_jobs([new_job(key="free", body="other")])) == 1


async def test_an_asyncpg_connection_without_a_transaction_inserts_at_once(stores: Stores) -> None:
    """Where the caller has opened no transaction, each insert is one of its own."""
    connection = await asyncpg.connect(shared_server().dsn)
    ids = await intake(stores).insert_jobs_on(connection, [new_job(), new_job(key="k", body="1")])
    await connection.close()
    assert await known(stores, ids) == 2


async def test_a_hint_follows_the_commit_where_it_can_be_seen(stores: Stores, opened: Opened) -> None:
    """Sessions of SQLAlchemy tell of their commits: the action runs once, after it; other connections say no."""
    connection, commit, _ = opened
    calls: list[int] = []
    await intake(stores).insert_jobs_on(connection, [new_job()])
    seen = intake(stores).after_commit(connection, lambda: calls.append(1))
    assert seen == isinstance(connection, Session | AsyncSession)
    assert calls == []
    await end(commit)
    assert len(calls) == int(seen)

    await intake(stores).insert_jobs_on(connection, [new_job()])
    if seen:
        await end(commit)
    assert len(calls) == int(seen)


@pytest.mark.parametrize("kind", ["sqlalchemy session", "sqlalchemy async session"])
async def test_no_hint_follows_a_rollback_or_a_savepoint(stores: Stores, kind: str) -> None:
    """A savepoint that is released commits nothing; after a rollback the action is forgotten, also later."""
    calls: list[int] = []
    async with OPENERS[kind]() as (connection, commit, rollback):
        assert intake(stores).after_commit(connection, lambda: calls.append(1))
        await intake(stores).insert_jobs_on(connection, [new_job(key="k", body="1")])
        await end(rollback)
        await intake(stores).insert_jobs_on(connection, [new_job(key="k", body="1")])
        await end(commit)
    assert calls == []


@pytest.mark.parametrize("connection", [None, object(), "postgresql://localhost", 7])
async def test_another_kind_of_connection_is_refused(stores: Stores, connection: object) -> None:
    """What is no connection of a known driver raises InvalidInputError that lists those known."""
    with pytest.raises(InvalidInputError, match="asyncpg or psycopg 3, or a connection or session of SQLAlchemy"):
        await intake(stores).insert_jobs_on(connection, [new_job()])


async def test_a_broken_connection_is_a_clear_error(stores: Stores) -> None:
    """A closed connection, or one whose transaction is aborted, is named as such, never a driver's error."""
    async with on_psycopg() as (connection, _, _rollback):
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 1/0")
        with pytest.raises(StoreUnavailableError, match="aborted"):
            await intake(stores).insert_jobs_on(connection, [new_job()])
    with pytest.raises(StoreUnavailableError, match="this connection"):
        await intake(stores).insert_jobs_on(connection, [new_job()])


async def test_many_jobs_exist_when_the_callers_transaction_commits() -> None:
    """`options(connection=…).enqueue_many` inserts all of its jobs inside the caller's transaction."""
    async with schema_stores() as (schema, stores), on_asyncpg() as (connection, commit, _):
        environ = {"HEADRACE_URL": shared_server().dsn, "HEADRACE_QUEUE_SCHEMA": schema}
        app = App(settings=load_settings(environ=environ))
        task = app.task(name="mail")(lambda number: number)
        async with app:
            handles = await task.options(connection=connection).enqueue_many([1, 2, 3])
        ids = [handle.id for handle in handles]
        assert await known(stores, ids) == 0
        await end(commit)
        assert await known(stores, ids) == 3


def test_jobs_with_equal_specifications_are_one_statement() -> None:
    """Specifications made anew for each call are grouped by what they say, in order of first appearance."""
    jobs = [NewJob(replace(SPEC, priority=number % 2), ARGS) for number in range(6)]
    groups = group_by_spec(jobs)
    assert [spec.priority for spec, _ in groups] == [0, 1]
    assert [[job.id for job in group] for _, group in groups] == [
        [job.id for job in jobs[0::2]], [job.id for job in jobs[1::2]],
    ]  # fmt: skip
