"""The memory store for the conformance suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace.ports.clock import Clock
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores


@asynccontextmanager
async def open_test_stores(clock: Clock) -> AsyncIterator[Stores]:
    """Open empty stores whose time is `clock`."""
    stores = open_memory_stores(clock)
    try:
        yield stores
    finally:
        await stores.close()
