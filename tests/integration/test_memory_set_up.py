"""Making the tables of memory tells the database who speaks of changes: the trigger, or Debezium."""

from __future__ import annotations

from dataclasses import replace

from headrace import App
from headrace.apps.memory.tables import MemoryTables
from tests.integration.memory_tables_world import open_apps


async def triggers(app: App) -> int:
    """Count the triggers on the buffer table."""
    async with app.database() as connection:
        query = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = to_regclass($1)"
        return int(await connection.fetchval(query, f"{app.settings.memory.schema}.buffer_zone"))


async def test_the_source_of_changes_may_change() -> None:
    """The trigger is made, taken away, and made again; what is as it should be is left alone."""
    async with open_apps(1, source="trigger") as [by_trigger]:
        settings = by_trigger.settings
        by_kafka = App(settings=replace(settings, memory=replace(settings.memory, source="debezium")))
        async with by_kafka:
            for app, expected in ((by_trigger, 2), (by_trigger, 2), (by_kafka, 0), (by_kafka, 0), (by_trigger, 2)):
                await MemoryTables(app).set_up()
                assert await triggers(app) == expected
