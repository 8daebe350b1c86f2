"""What a worker of memory does before anything begins.

Processes that work for a worker, such as those of a cluster, import single tasks and need none of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace import App
from headrace.apps.memory.means import TABLES


@asynccontextmanager
async def begun(_: App) -> AsyncIterator[None]:
    """Make what is missing of the tables, have all the work declared, sweep at once, and look at leases meanwhile."""
    # Late: what is declared there is by the settings, which a program may set until it opens the app.
    from headrace.apps.memory.worker import begin_sweep, release_leases

    await TABLES.set_up()
    await begin_sweep()
    releasing = asyncio.create_task(release_leases(), name="headrace-memory-leases")
    try:
        yield
    finally:
        releasing.cancel()
        await asyncio.gather(releasing, return_exceptions=True)
