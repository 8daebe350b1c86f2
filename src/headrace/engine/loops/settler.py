"""The settler: what the store ended by itself of runs is settled, and runs that are being cancelled come to their end.

Every worker does it; each job is settled once. Normally there is nothing to do: the end of a node's job carries what it
sets going.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from headrace.engine.loops.loop import Loop
from headrace.engine.workflows.means import Means
from headrace.engine.workflows.settling import effects_of
from headrace.engine.workflows.spawned import queues_of
from headrace.model.errors import StoreUnavailableError
from headrace.model.run import Effects, Unsettled

LOG = logging.getLogger("headrace.settler")

SLICE = 200
CANCEL_SLICE = 1_000


class Settler(Loop):
    """Settles one slice per step and comes back at once while slices are full."""

    name = "settler"

    def __init__(self, means: Means, interval: timedelta) -> None:
        super().__init__(interval)
        self._means = means

    async def step(self) -> None:
        """Settle once."""
        runs, notifier = self._means.stores.runs, self._means.stores.notifier
        jobs, applied = await runs.unsettled_jobs(limit=SLICE), []
        if jobs:
            settled = [(job.job_id, effects) for job in jobs if (effects := await self._effects_of(job)) is not None]
            applied = await runs.settle_jobs(settled)
            LOG.info("settled %d jobs of runs that did not end by their worker", len(jobs))
            for queue in sorted(queues_of(effects for _, effects in settled)):
                notifier.hint(f"queue:{queue}")
        ended, goes_on = await runs.sweep_runs(limit=CANCEL_SLICE)
        if jobs or ended:
            notifier.hint("done")
        if goes_on or (len(jobs) == SLICE and applied):
            self.wake()

    async def _effects_of(self, job: Unsettled) -> Effects | None:
        """Return what a job's end sets going; None where that fails, which holds up no other job."""
        try:
            return await effects_of(self._means, job)
        except StoreUnavailableError:
            raise
        except Exception:
            LOG.exception("job %s of run %s cannot be settled, trying again", job.job_id, job.run_id)
            return None
