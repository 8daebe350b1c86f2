"""Making the tables: by however many processes at once, and never over those of a newer version."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import asyncpg

from headrace import ConfigError, StoreVersionError
from headrace.apps.memory.tables.statements import Statements, read_sql
from headrace.apps.memory.tables.verbs import Verbs

#: `[memory] source`: the trigger tells of changes; otherwise Debezium does.
TRIGGER = "trigger"
#: Of schema.sql.
VERSION = 1


class SetUpVerbs(Verbs):
    """Making the tables and what tells of changes of the buffer."""

    async def set_up(self) -> None:
        """Make what is missing: schema, tables, and the trigger that `[memory] source` asks for.

        It may be called at any time, by many processes at once. Raises StoreVersionError for tables of a newer version,
        ConfigError where the user of the database may not make a schema.
        """
        statements = self._statements
        try:
            await statements.together(_make)
        except asyncpg.InsufficientPrivilegeError as error:
            raise ConfigError(
                f"memory.schema: the user of the database may not make the tables in the schema {statements.schema} "
                f"({error}): make the schema as its owner, with AUTHORIZATION for this user"
            ) from error


async def _make(statements: Statements) -> None:
    schema = statements.schema
    await statements.fetch("lock_tables", schema=schema)
    found = await statements.fetch_one("find_tables", schema=schema)
    if not found["has_schema"]:
        await statements.fetch("create_schema")
    if not found["has_tables"]:
        await statements.run_script(read_sql("schema.sql", schema))
        await statements.fetch("note_tables", version=VERSION, changes="")
    about = await statements.fetch_one("load_about")
    if about["version"] > VERSION:
        raise StoreVersionError(
            f"The tables of memory in the schema {schema} have version {about['version']}, this is Headrace for "
            f"version {VERSION}: install the newer Headrace that made them, or name another schema with [memory] schema"
        )
    await _tell_of_changes(statements, before=about["changes"])


async def _tell_of_changes(statements: Statements, *, before: str) -> None:
    """Make the trigger that tells of changes, or take it away, where that differs from what was made before."""
    memory, store = statements.app.settings.memory, statements.app.settings.queue.schema
    if memory.source == TRIGGER:
        now = made = _changes().trigger_sql(memory.schema, store, memory.prefix)
    else:
        now, made = "", _changes().no_trigger_sql(memory.schema) if before else ""
    # Not each time: a trigger that is made waits for all writers of its table, and they for it.
    if before != now:
        await statements.run_script(made)
        await statements.fetch("note_tables", version=VERSION, changes=now)


def _changes() -> Any:
    # Only here, as the consumer of changes may stand on these tables.
    return import_module("headrace.apps.memory.changes")
