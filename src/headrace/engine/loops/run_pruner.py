"""The pruner of runs: final runs leave after their retention, and signals with them, on the leader only."""

from __future__ import annotations

from datetime import timedelta

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.ports.stores import Stores

SLICE = 500


class RunPruner(Loop):
    """Removes one slice per step and comes back at once while slices are full."""

    name = "run-pruner"

    def __init__(self, stores: Stores, leadership: Leadership, *, keep: timedelta, interval: timedelta) -> None:
        super().__init__(interval)
        self._stores = stores
        self._leadership = leadership
        self._keep = keep

    async def step(self) -> None:
        """Prune once, if this process leads."""
        term = self._leadership.term
        if term is None:
            return
        runs = await self._stores.runs.prune_runs(older_than=self._keep, limit=SLICE, term=term)
        signals = await self._stores.signals.prune_signals(older_than=self._keep, limit=SLICE, term=term)
        if max(runs, signals) >= SLICE:
            self.wake()
