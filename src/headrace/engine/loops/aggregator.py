"""The aggregator: the safety net under batches, on the leader only.

Normally a batch closes right after the commit of its last completion. This pass closes what that missed (a process
died in between), settles batches being cancelled, finishes pauses and resumes that were cut short, abandons open
ones that went silent, and ends attempts that ran far beyond their timeout because their handler could not be stopped.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from headrace.engine.closing import announce_closed
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.loops.rescuer import follow_up
from headrace.model.farm import OVERDUE_SECONDS
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.aggregator")

SWEEP_LIMIT = 1_000
#: The worker itself ends an attempt at its timeout; this long after it nobody did.
OVERDUE_GRACE = timedelta(seconds=10)
#: A farm has longer: an attempt may have to wait until it is begun there, and the farm ends it by its own rules.
FARM_GRACE = timedelta(seconds=OVERDUE_SECONDS + 60)


class Aggregator(Loop):
    """Closes, settles, abandons and ends what is overdue."""

    name = "aggregator"

    def __init__(
        self, stores: Stores, leadership: Leadership, *, interval: timedelta, seal_timeout: timedelta,
        has_farm: bool = False,
    ) -> None:  # fmt: skip
        """`has_farm`: jobs of some queues run on a farm."""
        super().__init__(interval)
        self._has_farm = has_farm
        self._stores = stores
        self._leadership = leadership
        self._seal_timeout = seal_timeout

    async def step(self) -> None:
        """Make one pass, if this process leads."""
        term = self._leadership.term
        if term is None:
            return
        grace = FARM_GRACE if self._has_farm else OVERDUE_GRACE
        overdue = await self._stores.jobs.fail_overdue_jobs(grace=grace, limit=SWEEP_LIMIT, term=term)
        await follow_up(self._stores, overdue)
        closed = await self._stores.batches.sweep_batches(term=term, seal_timeout=self._seal_timeout, limit=SWEEP_LIMIT)
        announce_closed(self._stores, closed)
        if closed:
            LOG.info("closed %d batches that no completion closed", len(closed))
