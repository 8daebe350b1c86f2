"""Stores in memory that an app is lent for a test, whatever its settings name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.model.errors import ConfigError
from headrace.settings import MEMORY_URL, Settings, use_store

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.stores.memory.tables import MemoryTables


@contextmanager
def lend_memory(app: App) -> Iterator[MemoryTables]:
    """Let an app work on empty stores in memory until the block ends, however often it is opened meanwhile.

    Raises ConfigError when it is open already, or in memory.
    """
    from headrace.stores.memory.tables import MemoryTables

    if app.is_open or app.lent is not None:
        where = "in memory already" if app.lent is not None else "open already, on the store of its settings"
        raise ConfigError(f"the app is {where}; put it into memory once, before it is opened")
    tables, kept = MemoryTables(), app.settings
    app.settings, app.lent = _alone(kept), tables
    try:
        yield tables
    finally:
        app.settings, app.lent = kept, None


def _alone(settings: Settings) -> Settings:
    """Return settings that need no other process and no server but the model's."""
    usual = Settings()
    return replace(
        use_store(settings, MEMORY_URL),
        worker=replace(settings.worker, executor=usual.worker.executor),
        queues={name: replace(table, executor=None) for name, table in settings.queues.items()},
        limits=usual.limits,
        events=replace(settings.events, bus=usual.events.bus),
        blob_storage=usual.blob_storage,
        telemetry=usual.telemetry,
    )
