"""Units taken beforehand from a limiter beside the store, for the jobs that an admission may start.

What the limiter holds may be lost at any time: buckets that it does not know are declared again from the store, and
fill from empty. While it is away nothing that has a rate limit is admitted. Units are lost, never used twice, when an
admission is not answered.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from headrace.engine.late_limiter import soon
from headrace.engine.outage import Outage
from headrace.engine.registry import Registry
from headrace.model.admission import Admitted
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim
from headrace.model.limits import Rate, queue_cap
from headrace.ports.admission import Admission
from headrace.ports.limiter import Limiter, Taken

LOG = logging.getLogger("headrace.limits")

#: Which rates there are is believed this long.
BELIEVED_SECONDS = 2.0
#: A limiter that is away is asked again after this long.
AWAY_SECONDS = 0.5
#: The shortest time to wait for units.
LEAST_WAIT = timedelta(milliseconds=5)


async def redeclare(limiter: Limiter, admission: Admission, names: Collection[str] | None = None) -> dict[str, Rate]:
    """Declare the store's rates, or those among `names`, to a limiter, and return all there are."""
    rates = await _rates_in_force(admission)
    chosen = {name: rate for name, rate in rates.items() if names is None or name in names}
    if chosen:
        await limiter.declare(chosen)
    return rates


async def _rates_in_force(admission: Admission) -> dict[str, Rate]:
    return {row.name: row.rate for row in await admission.list_rates() if row.rate is not None}


class Grants:
    """Admits jobs of one worker's queues with units of a limiter beside the store."""

    def __init__(self, limiter: Limiter, admission: Admission, registry: Registry) -> None:
        self._limiter, self._admission, self._registry = limiter, admission, registry
        self._rates: dict[str, Rate] = {}
        self._read_at = -math.inf
        self._outage = Outage(LOG, "the limiter is away and no job with a rate limit starts")
        #: Units that jobs larger than a burst used beyond their grant; paid before anything else.
        self._owed: dict[str, float] = {}

    async def admit_jobs(self, claim: Claim) -> Admitted:
        """Admit jobs with what the limiter gives. Raises StoreUnavailableError when the store does not answer."""
        await self._look_at_rates()
        wanted = self._wanted(claim)
        taken = await self._take(wanted) if wanted else Taken({})
        granted = self._pay(taken.units)
        admitted = await self._admission.admit_jobs(claim, grants=granted)
        await self._settle(granted, admitted.spent)
        if taken.wait <= timedelta() or admitted.look_in == timedelta():
            return admitted
        wait = max(LEAST_WAIT, min(taken.wait, self._next_unit(wanted)))
        return replace(admitted, look_in=wait if admitted.look_in is None else min(wait, admitted.look_in))

    async def _look_at_rates(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._read_at < BELIEVED_SECONDS:
            return
        # Also where no task here names a rate: an operator may set one for a queue at any time.
        rates = await _rates_in_force(self._admission)
        changed = {name: rate for name, rate in rates.items() if self._rates.get(name) != rate}
        try:
            if changed:
                await soon(self._limiter.declare(changed))
        except StoreUnavailableError as error:
            self._outage.note(error)
            return
        self._rates = rates
        self._read_at = now

    def _wanted(self, claim: Claim) -> dict[str, float]:
        """Return how much of each bucket the jobs of a claim may need, at most a burst of each."""
        units = {queue_cap(claim.queue): 1.0}
        for task in self._registry:
            for name, cost in task.spec.gate.limits if task.spec.gate is not None else ():
                # A cost that each job brings is known to the store alone.
                units[name] = max(units.get(name, 0.0), math.inf if cost is None else cost)
        known = {name: amount for name, amount in units.items() if name in self._rates}
        bursts = {name: min(amount * claim.limit, self._rates[name].burst) for name, amount in known.items()}
        return {name: amount + self._owed.get(name, 0.0) for name, amount in bursts.items()}

    def _next_unit(self, wanted: Mapping[str, float]) -> timedelta:
        """Return how long the quickest of the buckets takes for one unit."""
        # Another queue's claimer may have read the rates anew meanwhile, one of them gone.
        known = [self._rates[name] for name in wanted if name in self._rates]
        return min((timedelta(seconds=1 / rate.per_second) for rate in known), default=LEAST_WAIT)

    async def _take(self, wanted: Mapping[str, float]) -> Taken:
        try:
            taken = await soon(self._limiter.take(wanted, some=True))
            if taken.unknown:
                LOG.warning("the limiter does not know %s: declaring it again", ", ".join(sorted(taken.unknown)))
                # Those that the store does not know either are gone: they are not asked for again.
                self._rates = await soon(redeclare(self._limiter, self._admission, taken.unknown))
                more = await soon(self._limiter.take({name: wanted[name] for name in taken.unknown}, some=True))
                taken = Taken({**taken.units, **more.units}, max(taken.wait, more.wait, LEAST_WAIT))
        except StoreUnavailableError as error:
            self._outage.note(error)
            return Taken({}, timedelta(seconds=AWAY_SECONDS))
        return taken

    def _pay(self, units: Mapping[str, float]) -> dict[str, float]:
        granted = dict(units)
        for name in self._owed.keys() & granted.keys():
            paid = min(self._owed[name], granted[name])
            granted[name] -= paid
            self._owed[name] -= paid
        self._owed = {name: owed for name, owed in self._owed.items() if owed > 0}
        return granted

    async def _settle(self, granted: Mapping[str, float], spent: Mapping[str, float]) -> None:
        left = {name: amount - spent.get(name, 0.0) for name, amount in granted.items()}
        for name, amount in left.items():
            if amount < 0:
                self._owed[name] = self._owed.get(name, 0.0) - amount
        unused = {name: amount for name, amount in left.items() if amount > 0}
        if unused:
            try:
                await soon(self._limiter.give_back(unused))
            except StoreUnavailableError as error:
                self._outage.note(error)
