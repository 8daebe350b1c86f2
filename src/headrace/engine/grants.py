"""Units taken beforehand from a limiter beside the store, for the jobs that an admission may start.

Which buckets the jobs of a queue need is learnt from the admissions: each tells what it was short of. The first that
waits for units gets all of its own at once, or none: what is left of them then belongs to nobody.

What the limiter holds may be lost at any time: buckets that it does not know are declared again from the store, and
fill from empty. While it is away nothing that has a rate limit is admitted. Units are lost, never used twice, when an
admission is not answered.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.engine.late_limiter import soon
from headrace.engine.outage import Outage
from headrace.model.admission import Admitted
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim
from headrace.model.limits import Rate
from headrace.ports.admission import Admission
from headrace.ports.limiter import Limiter, Taken

LOG = logging.getLogger("headrace.limits")

#: Which rates there are is believed this long.
BELIEVED_SECONDS = 2.0
#: A limiter that is away is asked again after this long.
AWAY_SECONDS = 0.5
#: A queue whose jobs used none of a bucket's units for so long takes no more of them beforehand.
KEPT_SECONDS = 2.0
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


@dataclass(slots=True)
class Need:
    """What the jobs of a queue need of a bucket."""

    #: units of one job, rather too many where they differ
    units: float
    #: when a job used some or waited for some, by the clock of the event loop
    seen_at: float
    #: units of the job that waits for them; None: none did when one looked last
    waiting: float | None = None
    #: when they may be there: of no use to ask before that
    again_at: float = -math.inf

    def wanted(self, jobs: int, burst: float) -> float:
        """Return how much to take for so many jobs: of no use to take for more than one where none waits."""
        if self.waiting is None:
            return min(self.units, burst)
        return max(self.waiting, min(self.waiting * jobs, burst))

    def learn(self, waiting: float | None, now: float, *, used: bool) -> None:
        """Take in what an admission told: units of the job that waits for them, and whether jobs used some."""
        if used or waiting is not None:
            self.seen_at = now
        if waiting is not None:
            self.units = max(waiting, 0.9 * self.units)
        if waiting is None or self.waiting is None or not math.isclose(self.waiting, waiting):
            self.again_at = -math.inf
        self.waiting = waiting


class Grants:
    """Admits jobs of one worker's queues with units of a limiter beside the store."""

    def __init__(self, limiter: Limiter, admission: Admission) -> None:
        self._limiter, self._admission = limiter, admission
        self._rates: dict[str, Rate] = {}
        self._read_at = -math.inf
        self._outage = Outage(LOG, "the limiter is away and no job with a rate limit starts")
        #: By queue and bucket.
        self._needs: dict[str, dict[str, Need]] = {}

    async def admit_jobs(self, claim: Claim) -> Admitted:
        """Admit jobs with what the limiter gives. Raises StoreUnavailableError when the store does not answer."""
        await self._look_at_rates()
        taken = await self._take(claim, self._needs_of(claim.queue))
        admitted = await self._admission.admit_jobs(claim, grants=taken.units)
        await self._give_back(taken.units, admitted.spent)
        self._learn(claim.queue, admitted)
        if not admitted.short or admitted.look_in == timedelta():
            return admitted
        wait = self._wait(claim.queue, admitted.short)
        return replace(admitted, look_in=wait if admitted.look_in is None else min(wait, admitted.look_in))

    async def _look_at_rates(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._read_at < BELIEVED_SECONDS:
            return
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

    def _needs_of(self, queue: str) -> Mapping[str, Need]:
        """Return what to ask for."""
        now = asyncio.get_running_loop().time()
        needs = {name: need for name, need in self._needs.get(queue, {}).items() if need.seen_at > now - KEPT_SECONDS}
        self._needs[queue] = needs
        return {name: need for name, need in needs.items() if name in self._rates and need.again_at <= now}

    def _learn(self, queue: str, admitted: Admitted) -> None:
        now, needs = asyncio.get_running_loop().time(), self._needs[queue]
        for name, units in admitted.short.items():
            needs.setdefault(name, Need(units, now))
        for name, need in needs.items():
            need.learn(admitted.short.get(name), now, used=name in admitted.spent)

    def _wait(self, queue: str, short: Mapping[str, float]) -> timedelta:
        """Return when to look again: at once for what was not asked for, because nobody knew."""
        now = asyncio.get_running_loop().time()
        again_at = min(
            self._needs[queue][name].again_at if name in self._rates else now + AWAY_SECONDS for name in short
        )
        return timedelta(seconds=max(0.0, again_at - now))

    async def _take(self, claim: Claim, needs: Mapping[str, Need]) -> Taken:
        if not needs:
            return Taken({})
        wanted = {name: need.wanted(claim.limit, self._rates[name].burst) for name, need in needs.items()}
        least = {name: need.waiting or 0.0 for name, need in needs.items()}
        try:
            taken = await soon(self._limiter.take(wanted, some=True, least=least))
            if taken.unknown:
                LOG.warning("the limiter does not know %s: declaring it again", ", ".join(sorted(taken.unknown)))
                # They begin empty. Those that the store does not know either are gone: they are not asked for again.
                self._rates = await soon(redeclare(self._limiter, self._admission, taken.unknown))
        except StoreUnavailableError as error:
            self._outage.note(error)
            taken = Taken({}, timedelta(seconds=AWAY_SECONDS))
        # Others give back what they do not need: a long wait may be shorter than was said.
        wait = min(max(taken.wait, LEAST_WAIT).total_seconds(), AWAY_SECONDS)
        again_at = asyncio.get_running_loop().time() + wait
        for need in needs.values():
            need.again_at = again_at if need.waiting is not None else need.again_at
        return taken

    async def _give_back(self, granted: Mapping[str, float], spent: Mapping[str, float]) -> None:
        left = {name: amount - spent.get(name, 0.0) for name, amount in granted.items()}
        unused = {name: amount for name, amount in left.items() if amount > 0}
        if unused:
            try:
                await soon(self._limiter.give_back(unused))
            except StoreUnavailableError as error:
                self._outage.note(error)
