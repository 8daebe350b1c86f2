"""Units taken beforehand from a limiter beside the store, for the jobs that an admission may start.

Which buckets the jobs of a queue need is learnt from the admissions: each tells what it was short of (`needs.py`). The
first that waits for units gets all of its own at once, or none: what is left of them then belongs to nobody.

What the limiter holds may be lost at any time: buckets that it does not know are declared again from the store, and
fill from empty. While it is away nothing that has a rate limit is admitted, and nothing else waits for it. Units are
lost, never used twice, when an admission is not answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from headrace.engine.late_limiter import soon
from headrace.engine.needs import LEAST_SECONDS, Need, Wanted
from headrace.engine.reach import Reach
from headrace.model.admission import Admitted
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim
from headrace.model.limits import Level, Rate
from headrace.ports.admission import Admission
from headrace.ports.limiter import Limiter, Taken

LOG = logging.getLogger("headrace.limits")

#: Which rates there are is believed this long.
BELIEVED_SECONDS = 2.0
#: The longest time after which one looks again: others give back what they do not need, or the limiter is there again.
AWAY_SECONDS = 0.5
#: A queue whose jobs used none of a bucket's units for so long takes no more of them beforehand.
KEPT_SECONDS = 2.0
#: An admission waits so long for rates that are being declared; those that take longer count from a later one on.
DECLARE_SECONDS = 0.02


async def redeclare(limiter: Limiter, admission: Admission, names: Collection[str]) -> None:
    """Declare the store's rates among `names` to a limiter. Raises StoreUnavailableError, the limiter's soon."""
    rates = await _rates_in_force(admission)
    if chosen := {name: rate for name, rate in rates.items() if name in names}:
        await soon(limiter.declare(chosen))


async def _rates_in_force(admission: Admission) -> dict[str, Rate]:
    return {row.name: row.rate for row in await admission.list_rates() if row.rate is not None}


class Grants:
    """Admits jobs of one worker's queues with units of a limiter beside the store."""

    def __init__(self, limiter: Limiter, admission: Admission) -> None:
        self._admission = admission
        self._reach = Reach(limiter)
        #: Rates of the store, and those of them that the limiter was told.
        self._in_force: dict[str, Rate] = {}
        self._declared: dict[str, Rate] = {}
        self._read_at = -math.inf
        self._declaring: asyncio.Task[None] | None = None
        #: By queue and bucket.
        self._needs: dict[str, dict[str, Need]] = {}

    async def close(self) -> None:
        """End what goes on behind the admissions; they may go on after it."""
        if self._declaring is not None:
            self._declaring.cancel()
            await asyncio.gather(self._declaring, return_exceptions=True)
        await self._reach.close()

    async def admit_jobs(self, claim: Claim) -> Admitted:
        """Admit jobs with what the limiter gives. Raises StoreUnavailableError when the store does not answer."""
        await self._look_at_rates()
        granted = await self._take(claim)
        admitted = await self._admission.admit_jobs(claim, grants=granted)
        await self._give_back(granted, admitted.spent)
        self._learn(claim.queue, admitted, granted)
        if not admitted.short or admitted.look_in == timedelta():
            return admitted
        wait = self._wait(claim.queue, admitted.short)
        return replace(admitted, look_in=wait if admitted.look_in is None else min(wait, admitted.look_in))

    async def _look_at_rates(self) -> None:
        """Read which rates there are, and let the limiter know: behind this admission, if that takes long."""
        now = asyncio.get_running_loop().time()
        if now - self._read_at >= BELIEVED_SECONDS:
            self._in_force = await _rates_in_force(self._admission)
            self._read_at = now
        self._declared = {name: rate for name, rate in self._declared.items() if name in self._in_force}
        if self._declaring is None and self._declared != self._in_force and not self._reach.away:
            self._declaring = asyncio.create_task(self._declare(), name="headrace-declare-rates")
        if (declaring := self._declaring) is not None:
            done, _ = await asyncio.wait({declaring}, timeout=DECLARE_SECONDS)
            for task in done:
                task.result()

    async def _declare(self) -> None:
        changed = {name: rate for name, rate in self._in_force.items() if self._declared.get(name) != rate}
        try:
            # While it is away they stay undeclared, and are declared when it is back.
            with contextlib.suppress(StoreUnavailableError):
                await self._reach.ask(lambda limiter: limiter.declare(changed))
                self._declared.update(changed)
        finally:
            self._declaring = None

    def _needs_of(self, queue: str) -> Mapping[str, Need]:
        """Return what to ask for."""
        now = asyncio.get_running_loop().time()
        needs = {name: need for name, need in self._needs.get(queue, {}).items() if need.seen_at > now - KEPT_SECONDS}
        self._needs[queue] = needs
        return {name: need for name, need in needs.items() if name in self._declared and need.again_at <= now}

    def _learn(self, queue: str, admitted: Admitted, granted: Mapping[str, float]) -> None:
        now, needs = asyncio.get_running_loop().time(), self._needs[queue]
        for name, units in admitted.short.items():
            needs.setdefault(name, Need(units, now))
        for name, need in needs.items():
            need.learn(name, admitted, granted.get(name, 0.0), now)

    def _wait(self, queue: str, short: Mapping[str, float]) -> timedelta:
        """Return when to look again: at once only for what was never asked for, because nobody knew."""
        if self._reach.away:
            return timedelta(seconds=AWAY_SECONDS)
        now, needs = asyncio.get_running_loop().time(), self._needs[queue]
        look_at = min(needs[name].look_at if name in self._declared else self._told_at(name, now) for name in short)
        return timedelta(seconds=max(0.0, look_at - now))

    def _told_at(self, name: str, now: float) -> float:
        """Return when the limiter may have been told a rate."""
        return now + (LEAST_SECONDS if name in self._in_force else AWAY_SECONDS)

    async def _take(self, claim: Claim) -> Mapping[str, float]:
        """Return what the limiter gives for the jobs of a queue."""
        if not (needs := self._needs_of(claim.queue)):
            return {}
        wanted = Wanted()
        try:
            wanted = await self._wanted(claim, needs)
            taken = await self._reach.ask(wanted.take_from) if wanted.units else Taken({})
        except StoreUnavailableError:
            taken = Taken({}, timedelta(seconds=AWAY_SECONDS))
        if taken.unknown:
            LOG.warning("the limiter does not know %s: declaring it again", ", ".join(sorted(taken.unknown)))
            # They begin empty, unless the next look finds that the store does not know them either.
            self._declared = {name: rate for name, rate in self._declared.items() if name not in taken.unknown}
            self._read_at = -math.inf
        self._note_asked(claim.queue, needs, wanted, taken)
        return taken.units

    async def _wanted(self, claim: Claim, needs: Mapping[str, Need]) -> Wanted:
        """Return what to take for jobs of a queue. Of buckets in doubt nothing is taken before it is of use."""
        in_doubt = {name for name, need in needs.items() if need.in_doubt(self._declared[name].burst)}
        beside = frozenset().union(*(needs[name].beside for name in in_doubt))
        levels: Mapping[str, Level] = {}
        if in_doubt:
            levels = await self._reach.ask(lambda limiter: limiter.levels(in_doubt | beside))
        known = self._needs[claim.queue]
        lacking = {
            name for name in beside
            if name in known and name in levels and not known[name].is_met(levels[name], self._declared.get(name))
        }  # fmt: skip
        wanted = Wanted()
        for name, need in needs.items():
            if name in in_doubt and need.beside <= lacking:
                wanted.spare(name, levels.get(name))
            elif rate := self._declared.get(name):
                wanted.ask(name, need, claim.limit, rate.burst)
        return wanted

    def _note_asked(self, queue: str, needs: Mapping[str, Need], wanted: Wanted, taken: Taken) -> None:
        now, known = asyncio.get_running_loop().time(), self._needs[queue]
        # Others give back what they do not need: a long wait may be shorter than was said.
        wait = min(max(taken.wait.total_seconds(), LEAST_SECONDS), AWAY_SECONDS)
        for name, need in needs.items():
            lacks = need.waiting is not None and wanted.lacks(name, taken.units)
            need.note_asked(now, wait if lacks else None, spared=name in wanted.spared)
        for name in wanted.spared:
            # It is of use together with what it was spared for.
            need = needs[name]
            look_at = min((known[other].look_at for other in need.beside if other in known), default=now)
            need.look_at = max(need.look_at, look_at)

    async def _give_back(self, granted: Mapping[str, float], spent: Mapping[str, float]) -> None:
        left = {name: amount - spent.get(name, 0.0) for name, amount in granted.items()}
        unused = {name: amount for name, amount in left.items() if amount > 0}
        if unused:
            with contextlib.suppress(StoreUnavailableError):
                await self._reach.ask(lambda limiter: limiter.give_back(unused))
