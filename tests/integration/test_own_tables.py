"""`app.database()`: tables of the user's beside those of the store, and jobs in one transaction with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace import App
from headrace.model.errors import ConfigError, StoreUnavailableError
from headrace.settings import load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server


@asynccontextmanager
async def app_on(**queue: Any) -> AsyncIterator[App]:
    """Open an app on a schema of its own."""
    async with empty_schema() as schema, stores_on(schema, None):
        environ = {"HEADRACE_URL": shared_server().dsn, "HEADRACE_QUEUE_SCHEMA": schema}
        environ |= {f"HEADRACE_QUEUE_{name.upper()}": str(value) for name, value in queue.items()}
        app = App(settings=load_settings(environ=environ))

        @app.task
        async def double(number: int) -> int:
            return 2 * number

        app.double = double  # type: ignore[attr-defined]
        async with app.worker(grace=0):
            yield app


async def test_a_row_and_its_job_are_one() -> None:
    """The row is there and the job runs, or neither."""
    async with app_on() as app, app.database() as connection:
        await connection.execute("CREATE TEMPORARY TABLE sacks (name text PRIMARY KEY)")
        async with app.transaction(connection):
            await connection.execute("INSERT INTO sacks VALUES ('rye')")
            job = await app.double.options(connection=connection).enqueue(21)  # type: ignore[attr-defined]
        assert await job.result("10s") == 42
        with pytest.raises(asyncpg.UniqueViolationError):
            async with app.transaction(connection):
                lost = await app.double.options(connection=connection).enqueue(1)  # type: ignore[attr-defined]
                await connection.execute("INSERT INTO sacks VALUES ('rye')")
        assert await app.runtime.stores.inspect.get_job(lost.id) is None
        await connection.execute("DROP TABLE sacks")


async def test_an_open_transaction_ends_with_the_block() -> None:
    """What was not committed is rolled back, and the connection is not lent to others."""
    async with app_on() as app:
        async with app.database() as connection:
            await connection.execute("BEGIN")
            pid = await connection.fetchval("SELECT pg_backend_pid()")
        async with app.database() as connection:
            assert await connection.fetchval("SELECT pg_backend_pid()") != pid


async def test_a_server_that_hangs_up_is_the_stores_fault() -> None:
    """A connection that was ended by the server is a StoreUnavailableError, which is tried again."""
    async with app_on() as app:
        with pytest.raises(StoreUnavailableError) as caught:
            async with app.database() as connection:
                await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert caught.value.transient


async def test_a_server_that_does_not_answer_in_time_is_the_stores_fault() -> None:
    """And its connection, on which an answer may be on its way, is lent to nobody."""
    async with app_on() as app:
        pids: list[int] = []
        with pytest.raises(StoreUnavailableError):
            async with app.database() as connection:
                pids.append(await connection.fetchval("SELECT pg_backend_pid()"))
                await connection.execute("SELECT pg_sleep(9)", timeout=0.1)
        async with app.database() as connection:
            assert await connection.fetchval("SELECT pg_backend_pid()") not in pids


async def test_errors_of_the_users_own_pass_through() -> None:
    """Of a file, or a deadlock, which the user does again; neither says that the store is away."""
    async with app_on() as app:
        with pytest.raises(FileNotFoundError):
            async with app.database():
                Path("/no/such/file").read_text()
        with pytest.raises(asyncpg.DeadlockDetectedError):
            async with app.database() as connection:
                await connection.execute("DO $$ BEGIN RAISE EXCEPTION 'as one' USING ERRCODE = '40P01'; END $$")


async def test_other_stores_have_none() -> None:
    """A memory store says what to do."""
    async with App("memory://") as app:
        with pytest.raises(ConfigError, match=r"app.database\(\) needs a PostgreSQL store"):
            app.database()
