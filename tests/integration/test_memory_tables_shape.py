"""The tables themselves: made once however many make them, every statement understood, every hot one by its index."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from headrace import ConfigError, StoreVersionError
from headrace.apps.memory.data.flushes import Reason
from headrace.apps.memory.tables import MemoryTables
from headrace.apps.memory.tables.statements import load_query
from headrace.stores.postgres.connection import PreparedConnection
from tests.backends.server import shared_server
from tests.integration.memory_tables_world import (
    WRITERS,
    chat,
    execute,
    fill,
    flushes,
    held,
    open_apps,
    open_one,
    rows_of,
    told,
)

NAMES = sorted(
    entry.name.removesuffix(".sql") for entry in (files("headrace.apps.memory.tables") / "queries").iterdir()
)
#: 5,000 users; 95,000 rows that are done and 5,000 that wait; 18,800 flushes that are done, some of each other state.
ROWS = (
    """INSERT INTO {schema}.users (id, last_flush) SELECT 'u' || n, 4 FROM generate_series(0, 4999) AS n""",
    """INSERT INTO {schema}.flushes (id, user_id, number, tokens, reason, blob_ids, state, ended_at, lease_until)
    SELECT md5(n::text)::uuid, 'u' || n % 5000, n / 5000 + 1, 50, 'full',
      ARRAY(SELECT md5('b' || n * 5 + place)::uuid FROM generate_series(0, 4) AS place),
      CASE WHEN n < 18800 THEN 'done' WHEN n < 18900 THEN 'failed' WHEN n < 18950 THEN 'processing' ELSE 'waiting' END,
      CASE WHEN n < 18900 THEN now() END, CASE WHEN n BETWEEN 18900 AND 18949 THEN now() + n * interval '1s' END
    FROM generate_series(0, 18999) AS n""",
    """INSERT INTO {schema}.buffer_zone (blob_id, user_id, token_size, blob_type, flush_id, status)
    SELECT md5('b' || n)::uuid, 'u' || n / 5 % 5000, 10, 'chat', CASE WHEN n < 95000 THEN md5((n / 5)::text)::uuid END,
      CASE WHEN n < 95000 THEN 'done' ELSE 'idle' END FROM generate_series(0, 99999) AS n""",
    """INSERT INTO {schema}.general_blobs (id, user_id, token_size, blob_type, blob_data)
    SELECT md5('b' || n)::uuid, 'u' || n / 5 % 5000, 10, 'chat', '{{}}' FROM generate_series(0, 99999) AS n""",
    """INSERT INTO {schema}.user_profiles (user_id, topic, sub_topic, content)
    SELECT 'u' || n % 5000, 't' || n / 5000, 's', 'x' FROM generate_series(0, 99999) AS n""",
    """INSERT INTO {schema}.user_events (id, user_id, event_tip, event_tags, profile_delta)
    SELECT md5(n::text)::uuid, 'u' || n % 5000, '', '[]', '[]' FROM generate_series(0, 99999) AS n""",
    """INSERT INTO {schema}.user_event_gists (event_id, user_id, number, content, words)
    SELECT md5(n::text)::uuid, 'u' || n % 5000, 0, '', to_tsvector('english', 'word' || n % 999)
    FROM generate_series(0, 99999) AS n""",
    """INSERT INTO {schema}.batches (id, flush_ids) SELECT md5(n::text)::uuid, ARRAY[md5(n::text)::uuid]
    FROM generate_series(0, 99999) AS n""",
    """INSERT INTO {schema}.pending_checks (user_id) SELECT 'u' || n FROM generate_series(0, 4999) AS n""",
)
#: Not for work: what people look at, and what is read once at the start.
NOT_HOT = {"list_flushes", "load_about", "find_tables"}
BIG = "users|flushes|buffer_zone|general_blobs|user_profiles|user_events|user_event_gists|batches|pending_checks"


@pytest.fixture
async def tables() -> AsyncIterator[MemoryTables]:
    """Open new tables."""
    async with open_one() as tables:
        yield tables


def schema_of(tables: MemoryTables) -> str:
    """Return the schema that they lie in."""
    return tables._app.settings.memory.schema


async def plans(tables: MemoryTables, connection: Any) -> dict[str, str]:
    """Return the plan of each statement, as a connection keeps it for good."""
    found = {}
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    for name in sorted(set(NAMES) - NOT_HOT):
        query = load_query(name, schema_of(tables))
        if query.text.startswith("CREATE"):
            continue
        await connection.execute(f"PREPARE p AS {query.text}")
        nothing = f"({', '.join('NULL' for _ in query.parameters)})" if query.parameters else ""
        rows = await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE p {nothing}")
        await connection.execute("DEALLOCATE p")
        found[name] = "\n".join(row[0] for row in rows)
    return found


async def test_no_statement_scans_a_table(tables: MemoryTables) -> None:
    """Neither on new tables without statistics nor with 100,000 rows; so a plan that was kept does no harm."""
    async with tables._app.database() as connection:
        for full in (False, True):
            for statement in ROWS if full else ():
                await execute(tables, statement)
            for each in BIG.split("|") if full else ():
                await execute(tables, f"ANALYZE {{schema}}.{each}")
            found = await plans(tables, connection)
            scanned = {name: plan for name, plan in found.items() if re.search(rf"Seq Scan on ({BIG})\b", plan)}
            assert not scanned, f"full: {full}\n" + "\n".join(f"{name}:\n{plan}" for name, plan in scanned.items())


async def test_every_statement_is_understood_without_questions(
    tables: MemoryTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server prepares each; the driver knows all types: to ask for one would cost 25 ms a connection."""

    async def ask(*_: object) -> object:
        raise AssertionError("the driver asked about a type")

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", ask)
    connection = await asyncpg.connect(shared_server().dsn, connection_class=PreparedConnection)
    for name in NAMES:
        query = load_query(name, schema_of(tables))
        statement = await connection.prepare(query.text)
        assert len(statement.get_parameters()) == len(query.parameters), name
    await connection.close()


async def test_a_verb_is_few_statements(tables: MemoryTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for most, two in one transaction for the largest, however many rows they are about."""
    sent: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def note(self: Any, text: str, *values: Any, **options: Any) -> Any:
        sent.append(text)
        return await fetch(self, text, *values, **options)

    monkeypatch.setattr(asyncpg.Connection, "fetch", note)

    async def count(verb: Any) -> int:
        before = len(sent)
        await verb
        return len(sent) - before

    assert await count(tables.insert_blobs([chat(f"u{n % 7}") for n in range(500)])) == 1
    assert await count(tables.buffer("u1")) == 1
    assert await count(tables.make_flushes("u1", Reason.FULL, most_tokens=50)) == 2
    [flush, *_] = await tables.unfinished("u1")
    work = await held(tables, flush)
    assert await count(tables.save_result(work, told("x"))) == 1
    assert await count(tables.commit(work, told("x"), keep_blobs=False)) == 1
    assert await count(tables.begin_flush((await tables.unfinished("u1"))[0].id, work.flush.created_at.resolution)) == 1


async def test_many_processes_make_the_tables_once() -> None:
    """Eight at the same moment on nothing, and again on what is there."""
    async with open_apps(WRITERS) as apps:
        everyone = [MemoryTables(app) for app in apps]
        for _ in range(2):
            await asyncio.gather(*(tables.set_up() for tables in everyone))
        assert [row["version"] for row in await rows_of(everyone[0], "about")] == [1]
        await fill(everyone[1], 1)
        await everyone[2].set_up()
        assert (await everyone[3].buffer("ada")).rows == 1


async def test_tables_of_a_newer_version_are_left_alone(tables: MemoryTables) -> None:
    """With what to do."""
    await execute(tables, "UPDATE {schema}.about SET version = 99")
    with pytest.raises(StoreVersionError, match=r"version 99.*install the newer Headrace"):
        await tables.set_up()


async def test_tables_that_are_not_there_are_named() -> None:
    """Before set_up every verb says what to do."""
    async with open_apps(1) as [app]:
        with pytest.raises(StoreVersionError, match="headrace memory run"):
            await MemoryTables(app).buffer("ada")


async def test_who_may_not_make_a_schema_hears_what_to_do() -> None:
    """No traceback of the driver for a missing right."""
    role = f"guest_{uuid4().hex[:8]}"
    async with open_apps(1) as [app], app.database() as connection:
        await connection.execute(f"CREATE ROLE {role}")
        with pytest.raises(ConfigError, match=r"memory.schema: .* make the schema as its owner"):
            async with connection.transaction():
                await connection.execute(f"SET LOCAL ROLE {role}")
                await MemoryTables(app, connection).set_up()
        await connection.execute(f"DROP ROLE {role}")


async def test_other_programs_insert_with_the_defaults(tables: MemoryTables) -> None:
    """User, blob and row of the buffer: it becomes a flush like any other; what breaks a rule is refused."""
    for statement in (
        "INSERT INTO {schema}.users (id) VALUES ('ada')",
        """INSERT INTO {schema}.general_blobs (id, token_size, user_id, blob_type, blob_data)
        VALUES ('00000000-0000-0000-0000-000000000001', 7, 'ada', 'chat', '{{"messages": []}}')""",
        """INSERT INTO {schema}.buffer_zone (blob_id, token_size, user_id, blob_type)
        VALUES ('00000000-0000-0000-0000-000000000001', 7, 'ada', 'chat')""",
    ):
        await execute(tables, statement)
    [flush] = await tables.make_flushes("ada", Reason.FULL, most_tokens=10)
    assert [blob.tokens for blob in (await held(tables, flush)).blobs] == [7]
    with pytest.raises(asyncpg.CheckViolationError):
        await execute(tables, "UPDATE {schema}.buffer_zone SET flush_id = NULL, status = 'done'")


async def test_one_project_knows_nothing_of_another() -> None:
    """A schema is a project."""
    async with open_one() as ours, open_one() as theirs:
        await flushes(ours)
        assert await theirs.list_flushes() == []
        assert await theirs.get_user("ada") is None
