"""The stager: scheduled jobs become ready when they are due.

Guaranteed: never early by the store's clock, late by at most one interval. Every worker stages; rows are taken once.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.engine.loops.loop import Loop
from headrace.ports.stores import Stores

STAGE_LIMIT = 5_000


class Stager(Loop):
    """Moves due jobs from scheduled to ready and hints their queues."""

    name = "stager"

    def __init__(self, stores: Stores, interval: timedelta = timedelta(milliseconds=500)) -> None:
        super().__init__(interval)
        self._stores = stores

    async def step(self) -> None:
        """Stage once."""
        for queue in sorted(await self._stores.jobs.stage_jobs(limit=STAGE_LIMIT)):
            self._stores.notifier.hint(f"queue:{queue}")
