"""The statements: one per file, all used, all understood by the server, and no SQL in Python."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest

from headrace.model.errors import InvalidInputError
from headrace.stores.postgres.queries import check_schema, load_query
from tests.integration.postgres_setup import database
from tools import check_sql

NAMES = sorted(
    entry.name.removesuffix(".sql")
    for entry in (files("headrace.stores.postgres") / "queries").iterdir()
    if entry.name.endswith(".sql")
)


def test_the_rules_of_sql_are_kept() -> None:
    """Headers, one statement per file, no file unused, no name without a file, no SQL text in Python."""
    assert check_sql.main() == 0


async def test_every_statement_is_understood_by_the_server() -> None:
    """The server prepares each statement on the schema as it is: a typing error or a lost column is found here."""
    async with database() as opened:
        connection = await opened.connect()
        for name in NAMES:
            query = load_query(name, opened.schema)
            try:
                statement = await connection.prepare(query.numbered)
            except asyncpg.PostgresError as error:
                pytest.fail(f"{name}: {error}")
            assert len(statement.get_parameters()) == len(query.parameters)
        await connection.close()


async def test_no_connection_asks_the_server_about_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """The array types of all statements are known beforehand: a question about them would cost 25 ms a connection."""
    asked: list[object] = []

    async def ask(_: object, numbers: object, timeout: object) -> object:
        asked.append(numbers)
        raise AssertionError(timeout)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", ask)
    async with database() as opened:
        connection = await opened.connect()
        for name in NAMES:
            await connection.prepare(load_query(name, opened.schema).numbered)
        rows = await opened.fetch("known_jobs", job_ids=[])
        await connection.close()
    assert (asked, rows) == ([], [])


def test_a_statement_has_a_form_for_each_driver() -> None:
    """Named parameters stay for psycopg and become numbers for asyncpg, one per name; comments are gone."""
    query = load_query("notify", "mill")
    assert query.named.endswith(
        "SELECT pg_notify(%(channel)s, p.payload) FROM unnest(%(payloads)s::text[]) AS p (payload)"
    )
    assert query.numbered == "SELECT pg_notify($1, p.payload) FROM unnest($2::text[]) AS p (payload)"
    assert query.parameters == ("channel", "payloads")
    assert '"mill".jobs' in load_query("claim_jobs", "mill").numbered


@pytest.mark.parametrize("schema", ["", "Mill", "mill;drop", 'm"', "x" * 60, "1st", "mühle"])
def test_a_schema_that_would_need_quoting_is_refused(schema: str) -> None:
    """The one identifier that comes from outside is plain, so no statement can be changed through it."""
    with pytest.raises(InvalidInputError, match="schema"):
        check_schema(schema)


def test_the_check_finds_what_it_is_for(tmp_path: Path) -> None:
    """Each rule of tools/check_sql.py is broken once, and each is reported."""
    for folder in ("queries", "migrations"):
        (tmp_path / folder).mkdir()
    header = "-- Why.\n-- Locks: none. Index: none.\n"
    broken = {
        "no_header.sql": "SELECT 1",
        "no_locks.sql": "-- Why.\n-- Index: none.\nSELECT 1",
        "two.sql": f"{header}SELECT 1; SELECT 2",
        "Loud.sql": f"{header}SELECT 1",
        "unused.sql": f"{header}SELECT 1",
    }
    for name, text in broken.items():
        (tmp_path / "queries" / name).write_text(text)
    (tmp_path / "migrations" / "1_what.sql").write_text("SELECT 1")
    (tmp_path / "store.py").write_text(
        '"""SELECT 1 FROM docstrings is fine."""\nasync def f(db):\n'
        '    await db.fetch("no_header")\n    await db.fetch("no_locks")\n    await db.fetch("two")\n'
        '    await db.fetch("missing")\n    await db.execute(f"DELETE FROM {db}")\n    x = "update the docs"\n'
    )

    found = "\n".join(
        [*check_sql.check_files(tmp_path), *check_sql.check_names(tmp_path), *check_sql.check_python(tmp_path)]
    )
    for expected in (
        "no_header.sql: begins with",
        "no_locks.sql: its header",
        "two.sql: holds one",
        "Loud.sql: a statement file",
        "1_what.sql: a migration",
        "unused.sql: no module",
        "store.py:6: there is no queries/missing.sql",
        "store.py:7: SQL belongs",
    ):
        assert expected in found
    assert "store.py:8" not in found
    assert "store.py:1:" not in found
