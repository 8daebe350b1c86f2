"""Bring a database to the schema of this version: up only, one transaction per migration, one migrator at a time.

`NNNN_pre_what.sql` keeps the code of the previous release working and is applied before new code starts;
`NNNN_post_what.sql` is applied once no old code runs any more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from headrace.model.errors import StoreVersionError
from headrace.stores.postgres.database import Database, DatabaseOptions, Transaction

_NAME = re.compile(r"(\d{4})_(pre|post)_[a-z0-9_]+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `migrations/`. Only `post` ones break the code of the release before."""

    version: int
    name: str
    breaking: bool


@cache
def known_migrations() -> tuple[Migration, ...]:
    """Return the migrations of this version, oldest first."""
    names = sorted(entry.name for entry in (files(__package__) / "migrations").iterdir() if entry.name.endswith(".sql"))
    return tuple(_parse(name) for name in names)


def _parse(name: str) -> Migration:
    match = _NAME.fullmatch(name)
    if match is None:
        raise StoreVersionError(f"The migration {name} is not named NNNN_pre_what.sql or NNNN_post_what.sql.")
    return Migration(int(match[1]), name.removesuffix(".sql"), match[2] == "post")


async def pending(dsn: str, *, schema: str = "headrace") -> list[str]:
    """Return the names of the migrations that `apply` would apply, oldest first; changes nothing.

    Raises StoreUnavailableError when the database cannot be reached, StoreVersionError when it is newer than this
    version of Headrace.
    """
    database = Database(DatabaseOptions(dsn, schema=schema, max_pool_size=1))
    try:
        return [migration.name for migration in await missing_migrations(database)]
    finally:
        await database.close()


async def apply(dsn: str, *, schema: str = "headrace") -> list[str]:
    """Apply what is pending and return the names of what was applied. Safe to run twice at once.

    Raises as `pending`.
    """
    database = Database(DatabaseOptions(dsn, schema=schema, max_pool_size=1))
    try:
        return await apply_to(database)
    finally:
        await database.close()


async def apply_to(database: Database) -> list[str]:
    """Apply what is pending to an opened database and return the names of what was applied.

    An empty database is filled at once: who opens it meanwhile finds all of it, or nothing. Otherwise each migration is
    committed alone.
    """

    async def step(tx: Transaction) -> list[str]:
        await tx.fetch("unbound_migration")
        await tx.fetch("lock_migrations", name=database.schema)
        await tx.fetch("create_schema")
        await tx.fetch("create_migrations")
        applied = {row["version"]: row["name"] for row in await tx.fetch("list_migrations")}
        missing = _missing(applied)
        now = missing[:1] if applied else missing
        for migration in now:
            await tx.run_script(f"migrations/{migration.name}.sql")
            await tx.fetch("note_migration", version=migration.version, name=migration.name)
        return [migration.name for migration in now]

    applied = []
    while names := await database.run(step):
        applied += names
    return applied


async def missing_migrations(database: Database) -> list[Migration]:
    """Return what is not applied yet; raises StoreVersionError when the database is newer than this code."""
    return _missing(await _applied(database))


async def check_version(database: Database, *, auto_migrate: bool) -> None:
    """Raise StoreVersionError unless the schema is the one this version needs.

    An empty database is filled when `auto_migrate` is set; an old one is never changed here.
    """
    applied = await _applied(database)
    if not applied and auto_migrate:
        await apply_to(database)
        return
    missing = _missing(applied)
    if missing:
        state = f"lacks {len(missing)} migration(s), first {missing[0].name}" if applied else "has no tables yet"
        raise StoreVersionError(f"The schema {database.schema} of the database {state}. Run `headrace migrate`.")


async def _applied(database: Database) -> dict[int, str]:
    found = await database.fetch_one("find_migrations", name=f'"{database.schema}".migrations')
    if found is None or not found["present"]:
        return {}
    return {row["version"]: row["name"] for row in await database.fetch("list_migrations")}


def _missing(applied: dict[int, str]) -> list[Migration]:
    known = known_migrations()
    newer = [name for version, name in sorted(applied.items()) if version > known[-1].version]
    if any(_parse(f"{name}.sql").breaking for name in newer):
        raise StoreVersionError(
            f"The database was migrated by a newer Headrace ({newer[-1]}); this one knows {known[-1].name}. Install "
            "the newer version here; `headrace migrate` cannot go back."
        )
    return [migration for migration in known if migration.version not in applied]
