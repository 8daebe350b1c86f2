"""The call reaper: calls of dead processes come to an end in the ledger.

Guaranteed: within one interval of a lease's end, at once when the process died on this host, a call that was sent is
orphaned and says what it may have cost. Not guaranteed: that it was paid, or that it was not.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.engine.dead_processes import expire_gone
from headrace.engine.loops.loop import Loop
from headrace.ports.stores import Stores

SWEEP_LIMIT = 1_000


class CallReaper(Loop):
    """Ends what dead processes left in the ledger of calls. Every worker sweeps, and whoever makes calls."""

    name = "call-reaper"

    def __init__(self, stores: Stores, interval: timedelta) -> None:
        super().__init__(interval)
        self._stores = stores

    async def step(self) -> None:
        """Sweep once."""
        await expire_gone(self._stores)
        if await self._stores.calls.reap_calls(limit=SWEEP_LIMIT) >= SWEEP_LIMIT:
            self.wake()
