"""The limiter's side of a pool in one process: leases what is needed, gives back what is not, tells and hears."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from datetime import timedelta

from headrace.llm.quota.central import Central
from headrace.llm.quota.learner import Learner
from headrace.llm.quota.prepaying import Prepaying
from headrace.llm.quota.state import State
from headrace.model.errors import StoreUnavailableError
from headrace.ports.limiter import Limiter

LOG = logging.getLogger("headrace.llm")

#: What is leased and not used for so long is given back.
IDLE_SECONDS = 0.15
#: The limiter is asked again after this part of a lease's time: all processes have their turn, and none the same pace.
TURN, TURN_JITTER = 0.4, 0.5
#: So many times what the next lease's time is expected to need is leased: calls do not come evenly.
AHEAD = 2.0
#: It is asked no more often than this.
LEAST_SECONDS = 0.01
#: How often it is asked whether the call that went ahead elsewhere was let through.
DOUBT_SECONDS = 0.1
#: While a pool is closed for long, somebody may have opened it.
LOOK_SECONDS = 2.0
#: After this long a limiter that was away is asked again.
AWAY_SECONDS = 0.5
_NOTHING = 1e-6


class Pump:
    """`_work` is the only task of a pool: it runs while somebody waits, or something is leased or has to be told."""

    def __init__(self, state: State, limiter: Limiter) -> None:
        self._state, self._central = state, Central(limiter, state.name)
        self.learner = Learner(state, self._central)
        self._prepaying = Prepaying(state, self._central)
        self._event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ask_at = 0.0
        #: for who waits, where all that was asked for was given: nobody else lacks it
        self._soon_at: float | None = None
        self._away = False
        #: what the limiter still has to be told
        self._trusts = self._leaves = False
        self._shuts: float | None = None
        self._returns: dict[str, float] = {}

    def kick(self, *, urgent: bool = False) -> None:
        """See to it that the task runs; `urgent`: that it looks now."""
        if self._task is None or self._task.done():
            if not self._state.ended:
                self._task = self._state.loop.create_task(self._work(), name=f"headrace-quota-{self._state.name}")
        elif urgent:
            self._event.set()

    def used(self) -> None:
        """See to it that more is leased before the last is used."""
        self.kick(urgent=self._ask_at <= self._state.loop.time() and self._wants(self._state.loop.time()))

    def shut(self, seconds: float | None) -> None:
        """Heed a closing: let all processes know of it (None: they need not), and drop what is leased."""
        if seconds is not None:
            self._shuts = max(seconds, self._shuts or 0.0)
        self._stop()
        self.kick(urgent=True)

    def relimit(self) -> None:
        """Heed other limits: tell them, and look again whether anything passes."""
        door = self._state.door
        if not door.doubtful:
            door.until = 0.0
        self._ask_at = 0.0
        self._drop_prepaid()
        self._owe(self._state.slots.relimit(self._state.limits.concurrency))
        self.learner.restart()
        self.kick(urgent=True)

    def trust(self) -> None:
        """Let all processes know that calls pass again."""
        self._trusts, self._ask_at = True, self._state.loop.time()
        self.kick(urgent=True)

    def leave_trying(self) -> None:
        """Let another call go ahead: the one that did was not sent."""
        self._leaves = True
        self.kick(urgent=True)

    async def close(self) -> None:
        """Give back what is not used, and end."""
        self._event.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(StoreUnavailableError):
            self._drop_prepaid()
            self._owe(self._state.slots.spare(self._state.loop.time(), idle=True))
            await self._tell()
            await self._give_back(self._state.balance.drain())

    async def _work(self) -> None:
        while (delay := await self._turn()) is not None:
            timer = self._state.loop.call_later(delay, self._event.set)
            try:
                await self._event.wait()
            finally:
                timer.cancel()
            self._event.clear()

    async def _turn(self) -> float | None:
        """Do what is due; return the seconds until the next turn, None when there is nothing more to do."""
        if self._state.ended:
            return None
        try:
            delay = await self._due()
            renew = self._state.slots.renews_in(self._state.loop.time())
            delay = renew if delay is None else delay if renew is None else min(delay, renew)
        except StoreUnavailableError as error:
            if not self._away:
                LOG.warning("nothing is sent to models with a quota while the limiter is away: %s", error)
            self._away = True
            self.learner.restart()
            return AWAY_SECONDS
        except Exception:
            # Callers would wait for ever if this task ended.
            LOG.exception("leasing from the quota %s failed; it is tried again", self._state.name)
            return AWAY_SECONDS
        if self._away:
            LOG.info("the limiter is there again")
        self._away = False
        return delay

    async def _due(self) -> float | None:
        state, now = self._state, self._state.loop.time()
        self._owe(state.slots.spare(now, idle=False))
        self._owe(state.slots.rent(now))
        await self._tell()
        if not self._wants(now):
            return await self._rest(now)
        rest = max(state.door.until, self._next_ask()) - now
        if rest > 0:
            return min(rest, LOOK_SECONDS)
        await self._ask(now)
        return max(0.0, self._next_ask() - state.loop.time()) if self._wants(state.loop.time()) else IDLE_SECONDS

    def _next_ask(self) -> float:
        soon = self._soon_at if self._state.line else None
        return self._ask_at if soon is None else min(self._ask_at, soon)

    async def _rest(self, now: float) -> float | None:
        """Give back what is not used for a while."""
        state = self._state
        rest = state.used_at + IDLE_SECONDS - now
        if rest > 0 and state.balance.leased:
            return rest
        self.learner.note(scarce=False)
        self._owe(state.slots.spare(now, idle=True))
        self._owe(state.balance.drain())
        await self._tell()
        return 0.0 if self._wants(state.loop.time()) or self._has_to_tell else None

    def _wants(self, now: float) -> bool:
        """Say whether somebody waits, or what is leased will not last long though calls keep coming."""
        state = self._state
        expected = state.demand.expected(state.slice_seconds, now)
        low = any(state.balance[key] < units for key, units in expected.items())
        return bool(state.line) or state.prepaid is not None or (low and not state.door.doubtful)

    @property
    def _has_to_tell(self) -> bool:
        return (
            self._shuts is not None or self._trusts or self._leaves or bool(self._returns) or self.learner.has_to_tell
        )

    async def _tell(self) -> None:
        """Let the limiter know what it has to know."""
        if self._shuts is not None:
            await self._central.shut(timedelta(seconds=self._shuts))
            self._shuts = None
        await self.learner.tell()
        if self._trusts:
            await self._central.trust()
            self._trusts = False
        if self._leaves:
            await self._central.leave_trying()
            self._leaves = False
        returns, self._returns = self._returns, {}
        await self._give_back(returns)

    def _owe(self, units: Mapping[str, float]) -> None:
        """Give back units soon."""
        for key, amount in units.items():
            self._returns[key] = self._returns.get(key, 0.0) + amount

    async def _ask(self, now: float) -> None:
        """Ask for what lacks: first for room, then for units."""
        state, self._soon_at = self._state, None
        if (calls := state.slots.lack(len(state.line))) > 0:
            await self._lease_slots(calls)
        if not state.slots.free:
            self.learner.note(scarce=False)
            self._ask_at = now + DOUBT_SECONDS * state.random.uniform(1 - TURN_JITTER, 1 + TURN_JITTER)
        elif state.door.doubtful:
            await self._go_ahead()
        elif self._prepaying.is_due:
            await self._prepay()
        else:
            await self._lease()

    async def _lease_slots(self, calls: int) -> None:
        slots = self._state.slots
        chosen = slots.choose(await self._central.levels(list(slots.rates)), calls)
        if chosen:
            lease = await self._central.lease(chosen, chosen)
            slots.lease(lease.units, self._state.loop.time())
            self._state.serve()

    def _stop(self) -> None:
        """Drop what is leased: the pool is closed."""
        self._drop_prepaid()
        self._state.stop()
        self._ask_at = self._state.door.until

    def _drop_prepaid(self) -> None:
        self._owe(self._prepaying.drop())

    async def _prepay(self) -> None:
        """Pay for a dear call in advance, and wait until it is earned: so cheap calls elsewhere do not starve it."""
        state, now = self._state, self._state.loop.time()
        lease = await self._central.lease({}, {})
        if lease.closed or lease.doubtful:
            await self._heed(closed=lease.closed)
        elif state.prepaid is None:
            if not await self._prepaying.pay():
                self.learner.restart()
        elif state.prepaid.payer is not state.line.head:
            # It left, or was served with what others had left over: what comes next is judged anew.
            self._drop_prepaid()
        elif state.prepaid.due_at <= now:
            self._prepaying.take()
            self.learner.note(scarce=True)
        due_at = state.prepaid.due_at if state.prepaid is not None else now
        self._ask_at = max(self._ask_at, min(due_at, now + LOOK_SECONDS / 4))

    async def _lease(self) -> None:
        state, now = self._state, self._state.loop.time()
        await self._give_back_more_than_needed()
        wanted, least = self._shopping(now)
        lease = await self._central.lease(wanted, least, grow=self.learner.would_grow)
        if lease.closed or lease.doubtful:
            await self._heed(closed=lease.closed)
            return
        state.balance.add(lease.units)
        state.serve()
        short = any(lease.units[key] < units - _NOTHING for key, units in wanted.items())
        pace = max(LEAST_SECONDS, TURN * state.slice_seconds) * state.random.uniform(1 - TURN_JITTER, 1 + TURN_JITTER)
        self._ask_at = now + max(pace, lease.wait if short else 0.0)
        self._soon_at = None if short else now + LEAST_SECONDS
        self.learner.note(scarce=short)
        if lease.grows:
            await self.learner.grow()

    async def _give_back_more_than_needed(self) -> None:
        state = self._state
        flows, needed = state.tempo.flows(), state.line.needed
        most = {key: max(2 * state.slice_seconds * flow, needed.get(key, 0.0)) for key, flow in flows.items()}
        await self._give_back(state.balance.cap(most))

    def _shopping(self, now: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return what is wanted of each dimension, and what is the least that is of use."""
        state, head = self._state, self._state.line.head
        expected = state.demand.expected(state.slice_seconds, now)
        wanted, least = {}, {}
        for key, flow in state.tempo.flows().items():
            first = head.units.get(key, 0.0) if head is not None else 0.0
            aim = max(state.line.needed.get(key, 0.0), AHEAD * expected.get(key, 0.0))
            lack = max(first, min(aim, flow * state.slice_seconds)) - state.balance[key]
            if lack > _NOTHING:
                wanted[key], least[key] = lack, max(0.0, first - state.balance[key])
        return wanted, least

    async def _heed(self, *, closed: bool) -> None:
        """Stop, as another process was told."""
        door, loop = self._state.door, self._state.loop
        if not door.doubtful:
            self.learner.closed_elsewhere()
        door.closed_elsewhere(loop.time() + await self._central.closed() if closed else 0.0)
        self._stop()

    async def _go_ahead(self) -> None:
        """Send one call, if no other process does, and see whether it is refused."""
        state = self._state
        self._ask_at = state.loop.time() + DOUBT_SECONDS
        if state.door.probe is not None:
            return
        lease = await self._central.lease({}, {})
        if lease.closed:
            await self._heed(closed=True)
        elif not lease.doubtful:
            state.door.open()
            self._ask_at = state.loop.time()
            self.learner.reopened()
        elif await self._central.may_try():
            self._send_probe()

    def _send_probe(self) -> None:
        state, head = self._state, self._state.line.head
        if head is None:
            self._leaves = True
            return
        state.line.leave(head)
        probe = state.door.probe = state.grant(head.units)
        head.future.set_result(probe)
        state.loop.call_later(state.door.doubt_seconds, self._not_refused, probe)

    def _not_refused(self, probe: object) -> None:
        if self._state.door.probe is probe:
            self.let_through()

    def let_through(self) -> None:
        """Open the door: the call that went ahead was not refused."""
        self._state.door.open()
        self.learner.reopened()
        self.trust()

    async def _give_back(self, units: Mapping[str, float]) -> None:
        if not units:
            return
        try:
            await self._central.give_back(units)
        except StoreUnavailableError:
            # What was not used may be lost, what was owed may not.
            self._state.balance.add({key: amount for key, amount in units.items() if amount < 0})
            raise
