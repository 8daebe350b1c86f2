"""One pool in one process: a small lease of its units, callers that wait for more, and what the provider said."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from headrace.llm.quota.balance import Balance
from headrace.llm.quota.central import Central
from headrace.llm.quota.demand import Demand
from headrace.llm.quota.door import Door
from headrace.llm.quota.line import Line, Waiter
from headrace.llm.quota.reservation import Reservation
from headrace.llm.quota.values import PoolStats, QuotaWait
from headrace.model.errors import StoreUnavailableError
from headrace.model.limits import Rate
from headrace.model.quota import Estimate, Pool, PoolLimits, QuotaHint, used_units
from headrace.model.usage import Usage
from headrace.ports.limiter import Limiter

LOG = logging.getLogger("headrace.llm")

#: The part of a pool's burst that its bucket keeps; the rest is for leases and for calls that overtake one another.
CENTRAL = 0.5
#: A lease is the flow of this part of the burst, at most SLICE_SECONDS of it.
SLICE, SLICE_SECONDS = 0.125, 0.25
#: What is leased and not used for so long is given back.
IDLE_SECONDS = 0.15
#: While more is wanted than there is, the limiter is asked no more often than this.
PACE_SECONDS = 0.05
#: While a pool is closed for long, somebody may have opened it.
LOOK_SECONDS = 2.0
#: After this long a limiter that was away is asked again.
AWAY_SECONDS = 0.5


@dataclass(slots=True)
class Counts:
    """What happened since the pool was first used here."""

    reserved: int = 0
    waits: int = 0
    waited: float = 0.0
    in_flight: int = 0
    refused: int = 0
    overloaded: int = 0


class LocalPool:
    """`_work` is its only task: it runs while somebody waits, something is leased, or the limiter has to be told."""

    def __init__(self, pool: Pool, limiter: Limiter, random: Random) -> None:
        self.name, self.limits = pool.name, pool.limits
        self._central, self._door = Central(limiter, pool.name), Door(random)
        self._loop = asyncio.get_running_loop()
        self._balance, self._line, self._demand = Balance(), Line(), Demand()
        self._counts, self._used = Counts(), dict[str, float]()
        self._event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ended = self._away = self._declared = False
        self._ask_at = self._used_at = 0.0
        #: what the limiter still has to be told
        self._shut_for: float | None = None
        self._trusting = self._leaving = False
        self._flows: dict[str, float] = {}
        self._set_flows()

    @property
    def closings(self) -> int:
        """How often the pool was closed."""
        return self._door.closings

    def relimit(self, limits: PoolLimits) -> None:
        """Heed other limits from now on."""
        self.limits, self._declared = limits, False
        self._set_flows()

    def _set_flows(self) -> None:
        self._flows = {str(key): flow for key, flow in self.limits.flows.items()}
        burst = self.limits.burst.total_seconds()
        self._slice_seconds = min(SLICE * burst, SLICE_SECONDS)
        self._central.rates = {key: Rate(flow, CENTRAL * burst * flow) for key, flow in self._flows.items()}

    def closed_for(self) -> timedelta:
        """Return for how much longer nothing passes."""
        return timedelta(seconds=self._door.rest(self._loop.time()))

    def stats(self) -> PoolStats:
        """Return how it stands."""
        counts = self._counts
        return PoolStats(
            name=self.name, used=dict(self._used), reserved=counts.reserved, waits=counts.waits,
            waited=timedelta(seconds=counts.waited), waiting=len(self._line), in_flight=counts.in_flight,
            refused=counts.refused, overloaded=counts.overloaded, closed=self.closed_for(),
            probing=self._door.doubtful, flows=dict(self._flows), leased=self._balance.leased,
        )  # fmt: skip

    # Reserving

    def try_reserve(self, estimate: Estimate) -> Reservation | None:
        """Reserve from what is leased, if nobody waits."""
        needs = self._needs(estimate)
        if self._line or not self._passes(needs):
            return None
        reservation = self._grant(needs)
        self._kick()
        return reservation

    async def reserve(self, estimate: Estimate, longest: timedelta | None) -> Reservation:
        """Wait in line."""
        now = self._loop.time()
        waiter = Waiter(
            self._needs(estimate), came_at=now, until=None if longest is None else now + longest.total_seconds()
        )
        wait = self._least_wait(waiter.units)
        if waiter.until is not None and now + wait > waiter.until:
            raise QuotaWait(timedelta(seconds=wait), self.name)
        self._line.join(waiter)
        timer = None if waiter.until is None else self._loop.call_at(waiter.until, self._give_up, waiter)
        self._kick(urgent=True)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            self._withdraw(waiter)
            raise
        finally:
            self._counts.waits += 1
            self._counts.waited += self._loop.time() - now
            if timer is not None:
                timer.cancel()

    def _needs(self, estimate: Estimate) -> Mapping[str, float]:
        units = estimate.units(self.limits.charge)
        return {str(key): amount for key, amount in units.items() if key in self._flows}

    def _passes(self, needs: Mapping[str, float]) -> bool:
        door = self._door
        return not (door.doubtful or self._ended or door.until > self._loop.time()) and self._balance.covers(needs)

    def _grant(self, needs: Mapping[str, float]) -> Reservation:
        now = self._loop.time()
        self._balance.add(needs, -1)
        self._demand.note(needs, now)
        self._used_at = now
        self._counts.reserved += 1
        self._counts.in_flight += 1
        return Reservation(self, needs, reserved_at=now)

    def _least_wait(self, units: Mapping[str, float]) -> float:
        """Return how long somebody who comes now waits at least, in seconds."""
        lacks = {
            key: self._line.needed.get(key, 0.0) + amount - self._balance[key] - self._central.rates[key].burst
            for key, amount in units.items()
        }
        flowing = max((lack / self._flows[key] for key, lack in lacks.items()), default=0.0)
        return max(0.0, flowing) + self._door.rest(self._loop.time())

    def _give_up(self, waiter: Waiter) -> None:
        """Tell a caller who cannot wait longer how long it would take."""
        if not waiter.future.done():
            self._line.leave(waiter)
            wait = max(self._least_wait(waiter.units), PACE_SECONDS)
            waiter.future.set_exception(QuotaWait(timedelta(seconds=wait), self.name))
            self._serve()

    def _withdraw(self, waiter: Waiter) -> None:
        """Leave nothing behind of a caller that was cancelled."""
        self._line.leave(waiter)
        if waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
            waiter.future.result().refund()
        self._serve()

    def _serve(self) -> None:
        """Let those pass who are next and for whom there is enough."""
        while (head := self._line.head) is not None and self._passes(head.units):
            self._line.leave(head)
            if not head.future.done():
                head.future.set_result(self._grant(head.units))

    # What became of a call

    def settle(self, reservation: Reservation, usage: Usage, hint: QuotaHint, per_token: timedelta | None) -> None:
        """Charge what was used."""
        used = {str(key): amount for key, amount in used_units(usage, self.limits.charge).items()}
        if not usage.tokens:
            used = dict(reservation.units)
        for key, amount in used.items():
            self._used[key] = self._used.get(key, 0.0) + amount
        self._balance.add({key: units - used.get(key, units) for key, units in reservation.units.items()})
        self._end_of(reservation, hint)

    def refund(self, reservation: Reservation, hint: QuotaHint) -> None:
        """Charge nothing."""
        if self._door.probe is reservation:
            self._door.probe, self._leaving = None, True
        elif reservation.closings == self._door.closings:
            self._balance.add(reservation.units)
        self._end_of(reservation, hint, accepted=False)

    def refuse(
        self, reservation: Reservation, told: timedelta | None, hint: QuotaHint, *, overloaded: bool = False
    ) -> None:
        """Close the pool; what was reserved is not given back: many providers count refused calls too."""
        self._counts.in_flight -= 1
        self._counts.overloaded += overloaded
        self._counts.refused += not overloaded
        told = max(filter(None, (told, hint.retry_after)), default=told)
        wait = self._door.refuse(reservation, told, self._loop.time())
        if wait is not None:
            self._shut_for = max(wait, self._shut_for or 0.0)
        self._stop()

    def lose(self, units: Mapping[str, float], *, probe: bool) -> None:
        """Forget a reservation that nobody ended; may be called by any thread."""
        self._loop.call_soon_threadsafe(self._lost)

    def _lost(self) -> None:
        self._counts.in_flight -= 1

    def _end_of(self, reservation: Reservation, hint: QuotaHint, *, accepted: bool = True) -> None:
        self._counts.in_flight -= 1
        if accepted and self._door.probe is reservation:
            self._let_through(reservation)
        self._serve()
        self._kick()

    def _stop(self) -> None:
        """Drop what is leased, and tell those who cannot wait so long."""
        debts = {key: units for key, units in self._balance.drain().items() if units < 0}
        self._balance.add(debts)
        until = self._door.until
        for waiter in [one for one in self._line if one.until is not None and one.until < until]:
            self._give_up(waiter)
        self._ask_at = until
        self._kick(urgent=True)

    def _let_through(self, reservation: Reservation) -> None:
        """Trust the provider again: the call that went ahead was not refused."""
        if self._door.probe is reservation:
            self._door.open()
            self._trusting, self._ask_at = True, self._loop.time()
            self._kick(urgent=True)

    # The task

    def _kick(self, *, urgent: bool = False) -> None:
        if self._task is None or self._task.done():
            if not self._ended:
                self._task = self._loop.create_task(self._work(), name=f"headrace-quota-{self.name}")
        elif urgent:
            self._event.set()

    async def _work(self) -> None:
        while (delay := await self._turn()) is not None:
            timer = self._loop.call_later(delay, self._event.set)
            try:
                await self._event.wait()
            finally:
                timer.cancel()
            self._event.clear()

    async def _turn(self) -> float | None:
        """Do what is due; return the seconds until the next turn, None when there is nothing more to do."""
        try:
            if self._ended:
                return None
            delay = await self._due()
        except StoreUnavailableError as error:
            if not self._away:
                LOG.warning("nothing is sent to limited models while the limiter is away: %s", error)
            self._away, self._declared = True, False
            return AWAY_SECONDS
        if self._away:
            LOG.info("the limiter is there again")
        self._away = False
        return delay

    async def _due(self) -> float | None:
        await self._tell()
        now = self._loop.time()
        if self._line or self._low(now):
            rest = max(self._door.until, self._ask_at) - now
            if rest > 0:
                return min(rest, LOOK_SECONDS)
            await (self._go_ahead() if self._door.doubtful else self._lease())
            return max(0.0, self._ask_at - self._loop.time()) if self._line or self._low(now) else IDLE_SECONDS
        rest = self._used_at + IDLE_SECONDS - now
        if rest > 0 and self._balance.leased:
            return rest
        await self._give_back(self._balance.drain())
        return None if not self._balance.drain() and not self._line else 0.0

    async def _tell(self) -> None:
        """Let the limiter know what it has to know."""
        if not self._declared:
            await self._central.declare()
            self._declared = True
        if self._shut_for is not None:
            wait, self._shut_for = self._shut_for, None
            await self._central.shut(timedelta(seconds=wait))
        if self._trusting:
            self._trusting = False
            await self._central.trust()
        if self._leaving:
            self._leaving = False
            await self._central.leave_trying()

    def _low(self, now: float) -> bool:
        """Say whether what is leased will not last long, though calls keep coming."""
        expected = self._demand.expected(self._slice_seconds, now)
        return any(self._balance[key] < amount / 2 for key, amount in expected.items() if key in self._flows)

    async def _lease(self) -> None:
        now = self._loop.time()
        most = {
            key: max(2 * self._slice_seconds * flow, self._line.needed.get(key, 0.0))
            for key, flow in self._flows.items()
        }
        await self._give_back(self._balance.cap(most))
        wanted, least = self._shopping(now)
        lease = await self._central.lease(wanted, least)
        if lease.closed or lease.doubtful:
            await self._heed(closed=lease.closed)
            return
        self._balance.add(lease.units)
        self._serve()
        short = any(lease.units[key] < units - 1e-6 for key, units in wanted.items())
        self._ask_at = now + max(PACE_SECONDS, lease.wait) if short else now

    def _shopping(self, now: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return what is wanted of each dimension, and what is the least that is of use."""
        head, expected = self._line.head, self._demand.expected(self._slice_seconds, now)
        wanted, least = {}, {}
        for key, flow in self._flows.items():
            first = head.units.get(key, 0.0) if head is not None else 0.0
            aim = max(self._line.needed.get(key, 0.0), expected.get(key, 0.0))
            lack = max(first, min(aim, flow * self._slice_seconds)) - self._balance[key]
            if lack > 0:
                wanted[key], least[key] = lack, max(0.0, first - self._balance[key])
        return wanted, least

    async def _heed(self, *, closed: bool) -> None:
        """Stop, as another process was told."""
        if closed:
            self._door.closed_elsewhere(self._loop.time() + await self._central.closed())
        else:
            self._door.doubted_elsewhere()
        self._stop()

    async def _go_ahead(self) -> None:
        """Send one call, if no other process does, and see whether it is refused."""
        self._ask_at = self._loop.time() + 2 * PACE_SECONDS
        if self._door.probe is not None:
            return
        lease = await self._central.lease({}, {})
        if lease.closed:
            await self._heed(closed=True)
        elif not lease.doubtful:
            self._door.open()
            self._ask_at = self._loop.time()
        elif await self._central.may_try():
            self._send_probe()

    def _send_probe(self) -> None:
        head = self._line.head
        if head is None:
            self._leaving = True
            return
        self._line.leave(head)
        reservation = self._door.probe = self._grant(head.units)
        head.future.set_result(reservation)
        self._loop.call_later(self._door.doubt_seconds, self._let_through, reservation)

    async def _give_back(self, units: Mapping[str, float]) -> None:
        if units:
            try:
                await self._central.give_back(units)
            except StoreUnavailableError:
                self._balance.add({key: amount for key, amount in units.items() if amount < 0})
                raise

    async def close(self) -> None:
        """Give back what is not used; callers that wait are cancelled."""
        self._ended = True
        for waiter in list(self._line):
            self._line.leave(waiter)
            waiter.future.cancel()
        self._event.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(StoreUnavailableError):
            await self._tell()
            await self._give_back(self._balance.drain())
