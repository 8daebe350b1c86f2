"""The pruner: history leaves after its retention, in bounded slices, on the leader only.

Guaranteed: nothing younger than its retention goes, nothing of a batch that is not closed, and nothing once another
process leads.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.model.stats import Retention
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.pruner")

SLICE = 1_000


class Pruner(Loop):
    """Removes one slice per step and comes back at once while slices are full."""

    name = "pruner"

    def __init__(self, stores: Stores, leadership: Leadership, retention: Retention, interval: timedelta) -> None:
        super().__init__(interval)
        self._stores = stores
        self._leadership = leadership
        self._retention = retention

    async def step(self) -> None:
        """Prune once, if this process leads."""
        term = self._leadership.term
        if term is None:
            return
        pruned = await self._stores.jobs.prune_jobs(self._retention, limit=SLICE, term=term)
        if pruned.total:
            LOG.debug("pruned %s", pruned.removed)
        if any(count >= SLICE for count in pruned.removed.values()):
            self.wake()
