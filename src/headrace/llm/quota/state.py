"""What callers' side and limiter's side of a pool share in one process."""

from __future__ import annotations

import asyncio
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

#: A lease is the flow of this part of the burst, at most SLICE_SECONDS of it.
SLICE, SLICE_SECONDS = 0.125, 0.25
#: Waits that are told are at least so long: who comes back at once only has to be told again.
LEAST_TOLD = 0.05


@dataclass(slots=True)
class Counts:
    """What happened since the pool was first used here."""

    reserved: int = 0
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
        self.ended = False
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

    def least_wait(self, units: Mapping[str, float]) -> float:
        """Return how long somebody who comes now waits at least, in seconds."""
        flows, wait = self.tempo.flows(), 0.0
        rates = self.tempo.rates(self.loop.time())
        for key, flow in flows.items():
            lack = self.line.needed.get(key, 0.0) + units.get(key, 0.0) - self.balance[key] - rates[key].burst
            wait = max(wait, lack / flow)
        return wait + self.door.rest(self.loop.time())

    def give_up(self, waiter: Waiter) -> None:
        """Tell a caller who cannot wait longer how long it would take."""
        if not waiter.future.done():
            self.line.leave(waiter)
            wait = max(self.least_wait(waiter.units), LEAST_TOLD)
            waiter.future.set_exception(QuotaWait(timedelta(seconds=wait), self.name))
            self.serve()

    def stop(self) -> None:
        """Drop what is leased when the door closes, and tell those who cannot wait so long."""
        debts = {key: units for key, units in self.balance.drain().items() if units < 0}
        self.balance.add(debts)
        until = self.door.until
        for waiter in [one for one in self.line if one.until is not None and one.until < until]:
            self.give_up(waiter)
