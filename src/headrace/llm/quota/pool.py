"""One pool in one process: the callers' side."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

from headrace.llm.quota.line import Waiter
from headrace.llm.quota.pump import Pump
from headrace.llm.quota.reservation import Reservation
from headrace.llm.quota.state import State
from headrace.llm.quota.tempo import Tempo
from headrace.llm.quota.values import PoolStats
from headrace.model.quota import Estimate, Pool, PoolLimits, QuotaHint, used_units
from headrace.model.usage import Usage
from headrace.ports.limiter import Limiter


class LocalPool:
    """Reserves from the lease or waits in line; what becomes of calls changes the lease and the door."""

    def __init__(self, pool: Pool, limiter: Limiter, random: Random) -> None:
        self.name = pool.name
        self._state = State(pool.name, pool.limits, ending=self, random=random)
        self._pump = Pump(self._state, limiter)

    @property
    def dead(self) -> bool:
        """Whether the loop it belongs to has ended."""
        return self._state.loop.is_closed()

    @property
    def limits(self) -> PoolLimits:
        """The limits that hold."""
        return self._state.limits

    def relimit(self, limits: PoolLimits) -> None:
        """Heed other limits from now on."""
        state = self._state
        state.limits, state.tempo = limits, Tempo(limits)
        state.line.reprice(state.needs)
        self._pump.relimit()

    def closed_for(self) -> timedelta:
        """Return for how much longer nothing passes."""
        return timedelta(seconds=self._state.door.rest(self._state.loop.time()))

    def stats(self) -> PoolStats:
        """Return how it stands."""
        state, counts = self._state, self._state.counts
        return PoolStats(
            name=self.name, used=dict(counts.used), reserved=counts.reserved, waits=counts.waits,
            waited=timedelta(seconds=counts.waited), waiting=len(state.line), in_flight=counts.in_flight,
            refused=counts.refused, overloaded=counts.overloaded, closed=self.closed_for(),
            probing=state.door.doubtful, flows=dict(state.tempo.flows()), learnt=state.tempo.learnt.flow,
            leased=state.balance.leased,
        )  # fmt: skip

    def try_reserve(self, estimate: Estimate) -> Reservation | None:
        """Reserve from what is leased, if nobody waits."""
        needs = self._state.needs(estimate)
        if self._state.line or not self._state.passes(needs):
            return None
        reservation = self._state.grant(needs)
        self._pump.used()
        return reservation

    async def reserve(self, estimate: Estimate, longest: timedelta | None) -> Reservation:
        """Wait in line."""
        state, now = self._state, self._state.loop.time()
        until = None if longest is None else now + longest.total_seconds()
        waiter = Waiter(estimate, state.needs(estimate), until=until)
        if until is not None and (state.jobs_leave or now + state.least_wait(waiter.units) > until):
            raise state.tell(waiter.units)
        state.line.join(waiter)
        timer = None if until is None else state.loop.call_at(until, state.lose_patience, waiter)
        self._pump.kick(urgent=True)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            self._withdraw(waiter)
            raise
        finally:
            state.counts.waits += 1
            state.counts.waited += state.loop.time() - now
            if timer is not None:
                timer.cancel()

    def turn_jobs_away(self, leave: bool) -> None:
        """Let nobody wait on who waits for a limited time; False: they may again."""
        state = self._state
        state.jobs_leave = leave
        for waiter in [one for one in state.line if leave and one.until is not None]:
            state.turn_away(waiter)

    def _withdraw(self, waiter: Waiter) -> None:
        """Leave nothing behind of a caller that was cancelled."""
        self._state.line.leave(waiter)
        if waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
            waiter.future.result().refund()
        self._state.serve()

    def settle(self, one: Reservation, usage: Usage, hint: QuotaHint, per_token: timedelta | None) -> None:
        """Charge what was used."""
        used = {str(key): amount for key, amount in used_units(usage, self.limits.charge).items()}
        self._state.counts.settled += 1
        self._pump.learner.settled()
        if usage.tokens:
            self._state.demand.answered(usage.output_tokens)
        else:
            used = dict(one.units)
        for key, amount in used.items():
            self._state.counts.used[key] = self._state.counts.used.get(key, 0.0) + amount
        self._state.balance.add({key: units - used.get(key, units) for key, units in one.units.items()})
        if per_token is not None:
            self._pump.learner.answered(per_token.total_seconds())
        if self._state.door.probe is one:
            self._pump.let_through()
        self._end(one, hint)

    def refund(self, one: Reservation, hint: QuotaHint) -> None:
        """Charge nothing."""
        door = self._state.door
        if door.probe is one:
            door.probe = None
            self._pump.leave_trying()
        elif one.closings == door.closings:
            # After a closing the flow begins with nothing.
            self._state.balance.add(one.units)
        self._end(one, hint)

    def refuse(self, one: Reservation, told: timedelta | None, hint: QuotaHint, *, overloaded: bool = False) -> None:
        """Close the pool; what was reserved is not given back: many providers count refused calls too."""
        state = self._state
        state.end_one()
        state.counts.overloaded += overloaded
        state.counts.refused += not overloaded
        told = max(filter(None, (told, hint.retry_after)), default=told)
        before = state.door.closings
        wait = state.door.refuse(one, told, state.loop.time())
        if state.door.closings != before:
            self._pump.learner.refused()
        self._pump.learner.hear(hint, age=0.0)
        self._pump.shut(wait)

    def lose(self) -> None:
        """Forget a call that nobody ended; may be called by any thread."""
        self._state.loop.call_soon_threadsafe(self._state.end_one)

    def _end(self, one: Reservation, hint: QuotaHint) -> None:
        state = self._state
        state.end_one()
        self._pump.learner.hear(hint, age=state.loop.time() - one.reserved_at)
        state.serve()
        self._pump.kick()

    async def close(self) -> None:
        """Give back what is not used; callers that wait are cancelled."""
        state = self._state
        state.ended = True
        for waiter in list(state.line):
            state.line.leave(waiter)
            waiter.future.cancel()
        await self._pump.close()
