"""An app that serves memory: for `headrace worker`, `serve` and `agent headrace.apps.memory.worker:app`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace import App
from headrace.apps.memory.graph import memory, memory_flush
from headrace.apps.memory.means import TABLES
from headrace.apps.memory.opening import app
from headrace.apps.memory.stages.consuming import consumer
from headrace.apps.memory.stages.sweeping import sweep


@asynccontextmanager
async def with_tables(_: App) -> AsyncIterator[None]:
    """Make what is missing of the tables before anything begins."""
    await TABLES.set_up()
    yield


app.lifespan = with_tables

__all__ = ["app", "consumer", "memory", "memory_flush", "sweep"]
