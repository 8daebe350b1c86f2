"""The rescuer: jobs of dead sessions run elsewhere.

Guaranteed: within one interval of a lease's end its jobs are ready again; at once when the process died on this host.
Every worker sweeps; the store lets each row be taken once. Not guaranteed: that the dead attempt had no effects.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from headrace.engine.closing import close_batches
from headrace.engine.dead_processes import expire_gone
from headrace.engine.loops.loop import Loop
from headrace.engine.telemetry import Telemetry
from headrace.model.stats import Rescued
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.rescuer")

SWEEP_LIMIT = 1_000


class Rescuer(Loop):
    """Expires sessions whose processes are gone on this host and takes back what dead sessions ran."""

    name = "rescuer"

    def __init__(self, stores: Stores, telemetry: Telemetry, interval: timedelta = timedelta(seconds=2)) -> None:
        super().__init__(interval)
        self._stores = stores
        self._telemetry = telemetry

    async def step(self) -> None:
        """Sweep once."""
        await expire_gone(self._stores)
        rescued = await self._stores.jobs.rescue_jobs(limit=SWEEP_LIMIT)
        await follow_up(self._stores, rescued)
        if rescued.released or rescued.failed:
            LOG.warning("rescued %d jobs, failed %d", len(rescued.released), len(rescued.failed))
            self._telemetry.count("headrace.jobs.rescue", len(rescued.released) + len(rescued.failed))
        if len(rescued.released) + len(rescued.failed) >= SWEEP_LIMIT:
            self.wake()


async def follow_up(stores: Stores, rescued: Rescued) -> None:
    """After the commit of a sweep: hint the queues that gained jobs, close batches that lost their last."""
    for queue in sorted(rescued.queues):
        stores.notifier.hint(f"queue:{queue}")
    if rescued.failed:
        stores.notifier.hint("done")
    await close_batches(stores, rescued.batches)
