"""What processes learn together of a pool's flow: one of them changes it, the others read it."""

from __future__ import annotations

from headrace.llm.quota.central import Central
from headrace.llm.quota.state import State
from headrace.llm.quota.tempo import HALVED_SECONDS, Passage
from headrace.model import learning
from headrace.model.learning import Learnt, Refusals, TokenTime
from headrace.model.quota import QuotaHint

#: How often what other processes have learnt is read, while it changes.
SYNC_SECONDS = 1.0
#: How long a provider that has become slow is given before it is asked even less.
SLOW_SECONDS = 5.0
#: The flow grows by so much time at once; the limiter lets one process do it so often.
GROWTH_SECONDS = 0.5
#: A smaller slowness is not worth a change.
_SLOW = 0.9


class Learner:
    """Changes `state.tempo.learnt`; `tell` is called in each turn of the pump."""

    def __init__(self, state: State, central: Central) -> None:
        self._state, self._central, self._passage = state, central, Passage()
        self._token_time = TokenTime()
        self._refusals = Refusals()
        self._scarce = False
        self._read_at = self._slow_at = 0.0
        self._declares = self._reads = True
        self._cut: Learnt | None = None

    @property
    def has_to_tell(self) -> bool:
        """Whether the limiter has to be told something."""
        return self._declares or self._cut is not None

    @property
    def would_grow(self) -> bool:
        """Whether all that flows is used, and more may flow."""
        return self._scarce and self._state.tempo.learns

    def restart(self) -> None:
        """Tell and read everything again."""
        self._declares = self._reads = True

    def note(self, *, scarce: bool) -> None:
        """Count the time since the last note; `scarce`: from now on the limiter has less than is wanted."""
        self._advance()
        self._scarce = scarce

    def hear(self, hint: QuotaHint, *, age: float) -> None:
        """Heed what a provider told beside an answer to a call that was sent `age` seconds ago."""
        state, now = self._state, self._state.loop.time()
        if state.tempo.hear(hint, now):
            state.line.reprice(state.needs)
            self._declares = self._reads = True
        # Since it was said, calls were sent of which it knew nothing, and it has filled up.
        flows = state.tempo.flows()
        most = {str(key): left for key, left in hint.remaining.items() if str(key) in flows}
        state.balance.cap({key: left + flows[key] * age for key, left in most.items()})

    def settled(self) -> None:
        """Count a call that was not refused."""
        self._refusals = self._refusals.after(refused=False)

    def refused(self) -> None:
        """Lower the flow, once for all refusals that close the pool, unless the flow is not the reason."""
        self._advance(closed=False)
        self._refusals = self._refusals.after(refused=True)
        tempo, now = self._state.tempo, self._state.loop.time()
        if tempo.known and self._refusals.seldom and self._passage.slack:
            self._cut = learning.unexplained(tempo.learnt)
            self._closed(now)
            return
        between = self._passage.mean(self._state.limits.burst.total_seconds())
        self._cut = learning.cut(tempo.learnt, between=between)
        self._closed(now)

    def closed_elsewhere(self) -> None:
        """Know that another process was refused: it lowers the flow."""
        self._advance(closed=False)
        self._closed(self._state.loop.time())

    def reopened(self) -> None:
        """Go on with what was learnt meanwhile."""
        self._advance(closed=True)
        self._reads = True

    def answered(self, seconds_per_token: float) -> None:
        """Lower the flow of a pool whose limits are unknown when tokens take longer than usual."""
        self._token_time = self._token_time.after(seconds_per_token)
        now, gradient = self._state.loop.time(), self._token_time.gradient
        if self._state.tempo.known or gradient > _SLOW or now < self._slow_at:
            return
        self._slow_at, self._token_time = now + SLOW_SECONDS, self._token_time.restarted()
        self._cut = learning.slow(self._state.tempo.learnt, gradient)

    async def tell(self) -> None:
        """Let the limiter know what has changed, and read what others have changed."""
        tempo, now = self._state.tempo, self._state.loop.time()
        if tempo.forget(now):
            self._state.line.reprice(self._state.needs)
            self._declares = True
        if self._cut is not None and await self._central.may_cut():
            await self._change(self._cut)
        elif self._reads or self._cut is not None or (tempo.learns and now >= self._read_at):
            self._advance()
            tempo.learnt = await self._central.read_learnt(self._kind) or tempo.first
            self._reads, self._read_at = False, now + SYNC_SECONDS
        self._cut = None
        if self._declares:
            self._declares = False
            await self._declare()

    async def grow(self) -> None:
        """Let more flow: this process has the right to."""
        tempo = self._state.tempo
        learnt = await self._central.read_learnt(self._kind) or tempo.first
        await self._change(learning.grow(learnt, GROWTH_SECONDS, ceiling=tempo.ceiling))

    @property
    def _kind(self) -> str:
        return "part" if self._state.tempo.known else "pace"

    async def _change(self, learnt: Learnt) -> None:
        self._advance()
        self._state.tempo.learnt, self._read_at = learnt, self._state.loop.time() + SYNC_SECONDS
        await self._central.write_learnt(self._kind, learnt)
        await self._declare()

    async def _declare(self) -> None:
        state = self._state
        rates = {**state.tempo.rates(state.loop.time()), **state.slots.rates}
        await self._central.declare(rates, {name: rate.burst for name, rate in state.slots.rates.items()})

    def _closed(self, now: float) -> None:
        self._passage.restart(now)
        self._scarce = True
        self._state.tempo.halved_until = now + HALVED_SECONDS

    def _advance(self, *, closed: bool | None = None) -> None:
        state = self._state
        shut = state.door.doubtful if closed is None else closed
        self._passage.advance(state.loop.time(), state.tempo.learnt.flow, closed=shut, scarce=self._scarce)
