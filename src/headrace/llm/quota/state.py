"""What callers' side and limiter's side of a pool share in one process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from headrace.llm.quota.balance import Balance
from headrace.llm.quota.demand import Demand
from headrace.llm.quota.door import Door
from headrace.llm.quota.line import Line, Waiter
from headrace.llm.quota.reservation import Ending, Reservation
from headrace.llm.quota.slots import Slots
from headrace.llm.quota.tempo import PACE, Tempo
from headrace.llm.quota.values import QuotaWait
from headrace.model.quota import Estimate, PoolLimits

LOG = logging.getLogger("headrace.llm")

#: A lease is the flow of this part of the burst, at most SLICE_SECONDS of it.
SLICE, SLICE_SECONDS = 0.125, 0.25
#: Waits that are told are at least so long: who comes back at once only has to be told again.
LEAST_TOLD = 0.05
#: Who will be first in line is told to come so much earlier, to stand there when it is: nothing is earned for nobody.
EARLY_SECONDS = 1.0
#: Nobody is told to come later than so long after the line has ended: by then more is known of what calls use.
HORIZON_SECONDS = 30.0
#: A dear call is paid in advance if it is earned in so long; one that takes longer is not waited for in a slot.
MOST_EARNED_SECONDS = 300.0
#: The part of what they reserve that calls are expected to use while none was answered.
EXPECTED_USE = 0.5


@dataclass(frozen=True, slots=True)
class Prepaid:
    """Units that are paid for whose dear call is next, and when they will be there (time of the loop)."""

    payer: Waiter
    due_at: float
    units: Mapping[str, float]


@dataclass(slots=True)
class Counts:
    """What happened since the pool was first used here."""

    reserved: int = 0
    settled: int = 0
    waits: int = 0
    waited: float = 0.0
    in_flight: int = 0
    refused: int = 0
    overloaded: int = 0
    used: dict[str, float] = field(default_factory=dict)


class State:
    """The lease, the line, the door; and who passes."""

    def __init__(self, name: str, limits: PoolLimits, *, ending: Ending, random: Random) -> None:
        self.name, self.limits, self._ending = name, limits, ending
        self.loop = asyncio.get_running_loop()
        self.random = random
        self.tempo, self.door = Tempo(limits), Door(random)
        self.slots = Slots(limits.concurrency, random)
        self.balance, self.line, self.demand, self.counts = Balance(), Line(), Demand(), Counts()
        self.prepaid: Prepaid | None = None
        #: until when callers that left were told to come (time of the loop)
        self._promised = 0.0
        self._warned = False
        self.ended = False
        #: nobody who waits for a limited time waits on: the worker that runs them ends
        self.jobs_leave = False
        self.used_at = 0.0

    @property
    def slice_seconds(self) -> float:
        """How much of the flow is leased at a time."""
        return min(SLICE * self.limits.burst.total_seconds(), SLICE_SECONDS)

    def needs(self, estimate: Estimate) -> Mapping[str, float]:
        """Return what a call reserves of each dimension of the pool."""
        reserved = estimate.units(self.limits.charge, usual_output=self.demand.output)
        units: dict[str, float] = {str(key): amount for key, amount in reserved.items()}
        units[PACE] = 1.0
        return {key: units.get(key, 1.0) for key in self.tempo.flows()}

    def passes(self, needs: Mapping[str, float]) -> bool:
        """Say whether a call that needs so much may be sent now."""
        door = self.door
        return not (door.doubtful or self.ended or door.until > self.loop.time()) and self._has_room_for(needs)

    def _has_room_for(self, needs: Mapping[str, float]) -> bool:
        return self.slots.free and self.balance.covers(needs)

    def grant(self, needs: Mapping[str, float]) -> Reservation:
        """Let a call pass, whatever there is."""
        now = self.loop.time()
        self.balance.add(needs, -1)
        self.demand.note(needs, now)
        self.used_at = now
        self.counts.reserved += 1
        self.counts.in_flight += 1
        self.slots.use()
        return Reservation(self._ending, needs, reserved_at=now, closings=self.door.closings)

    def end_one(self) -> None:
        """Know that a call has ended."""
        self.counts.in_flight -= 1
        self.slots.end()

    def serve(self) -> None:
        """Let those pass who are next and for whom there is enough."""
        while (head := self.line.head) is not None and self.passes(head.units):
            self.line.leave(head)
            if not head.future.done():
                head.future.set_result(self.grant(head.units))

    def is_dear(self, units: Mapping[str, float]) -> bool:
        """Say whether a call needs more than the limiter ever has: somebody has to stand there while it is earned."""
        rates = self.tempo.rates(self.loop.time())
        return not self._is_too_large(units) and any(units.get(key, 0.0) > rate.burst for key, rate in rates.items())

    def _is_too_large(self, units: Mapping[str, float]) -> bool:
        return any(units.get(key, 0.0) > flow * MOST_EARNED_SECONDS for key, flow in self.tempo.flows().items())

    def least_wait(self, units: Mapping[str, float]) -> float:
        """Return how long somebody who comes now waits at least, in seconds; with a dear call, to be first in line."""
        now, flows, wait = self.loop.time(), self.tempo.flows(), 0.0
        rates, is_dear = self.tempo.rates(now), self.is_dear(units)
        paid = self.prepaid.units if self.prepaid is not None else {}
        for key, flow in flows.items():
            burst, own = rates[key].burst, units.get(key, 0.0)
            ahead = self.line.needed.get(key, 0.0) - paid.get(key, 0.0)
            lack = ahead + (min(own, burst) if is_dear else own)
            wait = max(wait, (lack - self.balance[key] - burst) / flow)
        earned = max(0.0, self.prepaid.due_at - now) if self.prepaid is not None else 0.0
        return wait + earned + self.door.rest(now)

    def tell(self, units: Mapping[str, float]) -> QuotaWait:
        """Return what a caller is told that cannot wait: when to come again.

        Those with dear calls are told to come one after the other, as fast as the quota flows.
        """
        now, wait = self.loop.time(), self.least_wait(units)
        if self.is_dear(units):
            due_at = max(self._promised + self._usual_seconds(units), now + wait)
            if due_at <= now + wait + HORIZON_SECONDS:
                self._promised = due_at
            else:
                due_at = now + wait + HORIZON_SECONDS * self.random.uniform(0.5, 1)
            wait = due_at - now - EARLY_SECONDS
        too_large = self._is_too_large(units)
        told = QuotaWait(timedelta(seconds=max(wait, LEAST_TOLD)), self.name, too_large=too_large)
        if too_large and not self._warned:
            self._warned = True
            LOG.warning("a job waits for %s", told.reason)
        return told

    def _usual_seconds(self, units: Mapping[str, float]) -> float:
        """Return in what time the quota flows that a call will use, by what calls used so far."""
        counts, flows = self.counts, self.tempo.flows()
        usual = {key: EXPECTED_USE * amount for key, amount in units.items()}
        if counts.settled:
            usual = {key: min(amount, counts.used.get(key, 0.0) / counts.settled) for key, amount in units.items()}
        return max((usual.get(key, 0.0) / flow for key, flow in flows.items()), default=0.0)

    def lose_patience(self, waiter: Waiter) -> None:
        """Turn away a caller that has waited for as long as it may, but for one whose dear call is paid in advance."""
        if self.jobs_leave or self.prepaid is None or self.prepaid.payer is not waiter:
            self.turn_away(waiter)

    def turn_away(self, waiter: Waiter) -> None:
        """Tell a caller how long it would take."""
        if not waiter.future.done():
            self.line.leave(waiter)
            waiter.future.set_exception(self.tell(waiter.units))
            self.serve()

    def stop(self) -> None:
        """Drop what is leased when the door closes, and tell those who cannot wait so long."""
        debts = {key: units for key, units in self.balance.drain().items() if units < 0}
        self.balance.add(debts)
        until = self.door.until
        for waiter in [one for one in self.line if one.until is not None and one.until < until]:
            self.turn_away(waiter)
