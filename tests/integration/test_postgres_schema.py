"""The schema: what people read equals what machines run, and versions are checked before anything else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from headrace.model.batch import NewBatch
from headrace.model.errors import StoreUnavailableError, StoreVersionError
from headrace.model.feed import NewEntry
from headrace.model.job import JobSpec
from headrace.ports.stores import Stores
from headrace.stores.postgres import database, migrate, open_postgres_stores
from headrace.stores.postgres.queries import read_sql
from tests.integration.postgres_setup import SPEC, connection, new_schema_name, shared_server

CATALOGUE = {
    "columns": """SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = $1 ORDER BY 1, 2""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = $1 ORDER BY 1, 2",
    "constraints": """SELECT conrelid::regclass::text AS relation, conname, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE connamespace = to_regnamespace($1) ORDER BY 1, 2""",
    "procedures": """SELECT proname, pg_get_function_arguments(oid), prosrc FROM pg_proc
        WHERE pronamespace = to_regnamespace($1) ORDER BY 1, 2""",
    "settings": """SELECT relname, reloptions::text FROM pg_class
        WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'i') ORDER BY 1""",
}

#: Migrations of the release before, and tables whose indexes take their time.
RELEASED = 14
LARGE = ("jobs", "finished_jobs", "calls", "events")
TABLES = """SELECT array_agg(oid) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'"""
#: Tables that nobody else can read until this transaction ends.
LOCKED_OUT = """SELECT coalesce(array_agg(relation::regclass::text), '{}') FROM pg_locks
  WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' AND relation = ANY($1)"""


async def catalogue(schema: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything that makes up a schema, without its name."""
    async with connection() as opened:
        found = {kind: await opened.fetch(query, schema) for kind, query in CATALOGUE.items()}
    return {
        kind: [tuple(str(value).replace(schema, "SCHEMA") for value in row) for row in rows]
        for kind, rows in found.items()
    }


async def later(seconds: float, opening: Coroutine[Any, Any, Stores]) -> Stores:
    """Open after a moment, so that looks fall between the steps of another."""
    await asyncio.sleep(seconds)
    return await opening


async def drop(*schemas: str) -> None:
    """Remove schemas that a test made."""
    async with connection() as opened:
        for schema in schemas:
            await opened.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


async def test_the_schema_people_read_is_the_one_migrations_make() -> None:
    """schema.sql and all migrations give the same columns, indexes, constraints and settings."""
    read, run = new_schema_name(), new_schema_name()
    async with connection() as opened:
        await opened.execute(f'CREATE SCHEMA "{read}"; {read_sql("schema.sql", read)}')
    await migrate.apply(shared_server().dsn, schema=run)

    expected, actual = await catalogue(read), await catalogue(run)
    await drop(read, run)
    assert len(actual["columns"]) > 100
    assert actual == expected


def test_migrations_are_numbered_without_gaps() -> None:
    """Names follow NNNN_{pre,post}_what.sql and count from 1, so that each release knows what it lacks."""
    known = migrate.known_migrations()
    assert [migration.version for migration in known] == list(range(1, len(known) + 1))


async def test_migrating_lists_first_and_is_done_once() -> None:
    """`pending` changes nothing; `apply` applies all; then neither finds anything to do."""
    dsn, schema = shared_server().dsn, new_schema_name()
    names = [migration.name for migration in migrate.known_migrations()]
    assert await migrate.pending(dsn, schema=schema) == names
    assert await migrate.pending(dsn, schema=schema) == names
    assert await migrate.apply(dsn, schema=schema) == names
    assert await migrate.pending(dsn, schema=schema) == []
    assert await migrate.apply(dsn, schema=schema) == []
    await drop(schema)


async def test_a_schema_has_an_id_of_its_own() -> None:
    """It is made with the schema, stays the same whoever opens it, and another schema of the database has another."""
    dsn, schemas = shared_server().dsn, [new_schema_name(), new_schema_name()]
    found = []
    for schema in (*schemas, *schemas):
        stores = await open_postgres_stores(dsn, schema=schema, auto_migrate=True)
        found.append(await stores.runs.store_id())
        await stores.close()
    await drop(*schemas)
    assert found[:2] == found[2:]
    assert len(set(found)) == 2


async def test_what_the_release_before_stored_goes_on_after_the_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch whose callback knows nothing of a second argument calls it with one; there are feeds and tokens."""
    dsn, schema = shared_server().dsn, new_schema_name()
    known = [migration for migration in migrate.known_migrations() if migration.version < 13]
    with monkeypatch.context() as before:
        before.setattr(migrate, "known_migrations", lambda: known)
        stores = await open_postgres_stores(dsn, schema=schema, auto_migrate=True)
        batch = await stores.batches.create_batch(NewBatch(SPEC, on_close=JobSpec("report", "reports")), None)
        await stores.close()
    async with connection() as opened:
        sealed = "state = 'sealed', total = 0, on_close = (on_close::jsonb - 'more')::json"
        await opened.execute(f'UPDATE "{schema}".batches SET {sealed}')
    assert (await migrate.apply(dsn, schema=schema))[0] == "0013_pre_service"
    stores = await open_postgres_stores(dsn, schema=schema)
    await stores.batches.close_batches([batch])
    [callback] = await stores.inspect.list_jobs(queue="reports")
    assert callback.args == {"args": [str(batch)], "kwargs": {}}
    assert await stores.feeds.append_entries("f", [NewEntry("item", "1", "k")] * 2) == [1, 1]
    assert await stores.tokens.list_tokens() == []
    await stores.close()
    await drop(schema)


async def test_processes_that_migrate_together_apply_each_migration_once() -> None:
    """Four migrators of an empty database: one applies, the others wait and find nothing left."""
    dsn, schema = shared_server().dsn, new_schema_name()
    applied = await asyncio.gather(*(migrate.apply(dsn, schema=schema) for _ in range(4)))
    await drop(schema)
    assert sorted(name for names in applied for name in names) == [m.name for m in migrate.known_migrations()]


async def test_a_migration_may_take_longer_than_any_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the bound of our statements nor one of the server ends it: the index of a large table takes its time."""
    dsn, schema, moment = shared_server().dsn, new_schema_name(), timedelta(milliseconds=200)
    await migrate.apply(dsn, schema=schema)
    known = migrate.known_migrations()
    slow = migrate.Migration(known[-1].version + 1, "9999_pre_slow", breaking=False)
    monkeypatch.setattr(migrate, "known_migrations", lambda: (*known, slow))
    monkeypatch.setattr(database, "read_sql", lambda path, schema: f"SELECT pg_sleep(0.6) /* {path} {schema} */")
    bound = database.DatabaseOptions(
        f"{dsn}{'&' if '?' in dsn else '?'}statement_timeout=200", schema=schema, statement_timeout=moment
    )
    opened = database.Database(bound)
    assert await migrate.apply_to(opened) == [slow.name]
    await opened.close()
    await drop(schema)


async def test_the_index_of_a_large_table_is_built_while_nothing_is_locked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what came after the release before, no migration that takes its time keeps anybody from reading meanwhile."""
    dsn, schema, known = shared_server().dsn, new_schema_name(), migrate.known_migrations()
    with monkeypatch.context() as before:
        before.setattr(migrate, "known_migrations", lambda: known[:RELEASED])
        await migrate.apply(dsn, schema=schema)
    building = []
    async with connection() as opened:
        there = await opened.fetchval(TABLES, schema)
        for migration in known[RELEASED:]:
            script = read_sql(f"migrations/{migration.name}.sql", schema)
            async with opened.transaction():
                await opened.execute(script)
                locked = await opened.fetchval(LOCKED_OUT, there)
            if re.search(rf"CREATE INDEX \w+ ON \S+\.({'|'.join(LARGE)}) ", script):
                building.append(migration.name)
                assert locked == [], migration.name
    await drop(schema)
    assert building == ["0017_pre_parked_places", "0019_pre_calls_of_job"]


async def test_an_empty_database_is_filled_only_when_asked() -> None:
    """Without `auto_migrate` the error names the command; with it the store opens."""
    dsn, schema = shared_server().dsn, new_schema_name()
    with pytest.raises(StoreVersionError, match="headrace migrate"):
        await open_postgres_stores(dsn, schema=schema)
    stores = await open_postgres_stores(dsn, schema=schema, auto_migrate=True)
    assert await stores.inspect.queue_stats() == []
    await stores.close()
    await drop(schema)


async def test_processes_that_open_an_empty_database_together_find_all_of_it_or_nothing() -> None:
    """Whoever looks while another fills it never takes it for an old database: all of them open."""
    for _ in range(3):
        schema = new_schema_name()
        opening = (
            later(0.01 * number, open_postgres_stores(shared_server().dsn, schema=schema, auto_migrate=True))
            for number in range(8)
        )
        for stores in await asyncio.gather(*opening):
            await stores.close()
        await drop(schema)


async def test_a_database_of_another_version_is_refused() -> None:
    """An older schema and one with a breaking newer migration are refused; a newer compatible one is used."""
    dsn, schema = shared_server().dsn, new_schema_name()
    await migrate.apply(dsn, schema=schema)
    for version, name, refused in [(9000, "9000_pre_more", False), (9001, "9001_post_less", True)]:
        async with connection() as opened:
            await opened.execute(f'INSERT INTO "{schema}".migrations VALUES ($1, $2)', version, name)
        if refused:
            with pytest.raises(StoreVersionError, match=r"newer Headrace \(9001_post_less"):
                await open_postgres_stores(dsn, schema=schema)
        else:
            await (await open_postgres_stores(dsn, schema=schema)).close()
    async with connection() as opened:
        await opened.execute(f'DELETE FROM "{schema}".migrations WHERE version = 1 OR version > 9000')
    with pytest.raises(StoreVersionError, match="headrace migrate"):
        await open_postgres_stores(dsn, schema=schema, auto_migrate=True)
    await drop(schema)


async def test_a_server_that_is_not_there_is_a_clear_error() -> None:
    """No server, or an address that is none: StoreUnavailableError that shows no password."""
    for dsn in ("postgresql://me:s3cret@127.0.0.1:9/none", "postgresql://me:s3cret@/none?host=/nowhere", "nonsense"):
        with pytest.raises(StoreUnavailableError, match="HEADRACE_URL") as caught:
            await open_postgres_stores(dsn)
        assert "s3cret" not in str(caught.value)
