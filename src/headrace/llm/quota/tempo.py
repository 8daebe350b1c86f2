"""How fast a pool flows: by its limits, by what headers told, and by what was learnt from refusals."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.model.learning import Learnt
from headrace.model.limits import Rate
from headrace.model.quota import PoolLimits, QuotaHint

#: The one dimension of a pool whose limits nobody knows: calls.
PACE = "pace"
#: What an unknown provider is asked at first, in calls per second.
START_FLOW = 10.0
#: The part of a pool's burst that its bucket keeps; the rest is for leases and for calls that overtake one another.
CENTRAL = 0.5
#: For so long a limit that headers told below the configured one is heeded.
TOLD_SECONDS = 60.0
#: For so long after a closing the burst is half of what it was.
HALVED_SECONDS = 30.0
#: The flow between two refusals tells nothing where less time was open than this.
TELLING_SECONDS = 0.25
#: Where less was used than flowed for more than the first part of the time, the flow in between tells nothing; for more
#: than the second, it was not the reason of a refusal.
NO_SLACK, SLACK = 0.2, 0.5
#: Told limits that differ by less are the same.
_NEAR = 0.005


class Tempo:
    """The flows of one pool, in units per second over all processes."""

    def __init__(self, limits: PoolLimits) -> None:
        self.limits = limits
        self._told: dict[str, float] = {}
        self._told_at = 0.0
        self.halved_until = 0.0
        self.learnt = self.first

    @property
    def known(self) -> bool:
        """Whether there are limits, so that what is learnt is a part of them; else it is a pace."""
        return bool(self.limits.flows or self._told)

    @property
    def first(self) -> Learnt:
        """What holds until something is learnt."""
        return Learnt(1.0) if self.known else Learnt(START_FLOW)

    @property
    def ceiling(self) -> float | None:
        """What is learnt at most."""
        return 1.0 if self.known else None

    @property
    def learns(self) -> bool:
        """Whether the flow may grow."""
        return self.ceiling is None or self.learnt.flow < self.ceiling

    def hear(self, hint: QuotaHint, now: float) -> bool:
        """Heed limits that a provider told; say whether flows have changed. They are never raised above the limits."""
        told = {str(key): rate / 60 for key, rate in hint.limits.items() if rate > 0}
        configured = {str(key): flow for key, flow in self.limits.flows.items()}
        if configured:
            told = {key: flow for key, flow in told.items() if flow < configured.get(key, float("inf")) * (1 - _NEAR)}
        if not told:
            return False
        was_known, before = self.known, self._told
        self._told, self._told_at = told, now
        if not was_known:
            self.learnt = self.first
        return not was_known or _differ(before, told)

    def forget(self, now: float) -> bool:
        """Return to the limits when nothing lower was told for a while; say whether anything has changed."""
        over = bool(self._told and self.limits.flows) and now > self._told_at + TOLD_SECONDS
        if over:
            self._told = {}
        whole = 0.0 < self.halved_until <= now
        if whole:
            self.halved_until = 0.0
        return over or whole

    def flows(self) -> Mapping[str, float]:
        """Return units per second by dimension."""
        if not self.known:
            return {PACE: self.learnt.flow}
        limits = {str(key): flow for key, flow in self.limits.flows.items()}
        lower = {key: min(flow, limits.get(key, flow)) for key, flow in self._told.items()}
        return {key: flow * self.learnt.flow for key, flow in {**limits, **lower}.items()}

    def rates(self, now: float) -> Mapping[str, Rate]:
        """Return the rates of the pool's buckets."""
        burst = CENTRAL * self.limits.burst.total_seconds() * (0.5 if now < self.halved_until else 1.0)
        return {key: Rate(flow, burst * flow) for key, flow in self.flows().items()}


def _differ(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() != other.keys() or any(abs(one[key] - other[key]) > _NEAR * one[key] for key in one)


class Passage:
    """The mean flow between two refusals; between them a provider lets pass just what it lets flow."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._open = self._closed = self._slack = self._flowed = 0.0

    def advance(self, now: float, flow: float, *, closed: bool, scarce: bool) -> None:
        """Count the time since the last call, in which the flow was this; not `scarce`: not all of it was used."""
        if self._at is None:
            return
        seconds, self._at = max(0.0, now - self._at), now
        if closed:
            self._closed += seconds
            return
        self._open += seconds
        self._flowed += flow * seconds
        self._slack += 0.0 if scarce else seconds

    @property
    def slack(self) -> bool:
        """Whether there was a refusal, and for most of the time since then less was used than flowed."""
        return self._slack > SLACK * self._open

    def mean(self, burst_seconds: float) -> float | None:
        """Return the mean flow since the last refusal; None where it tells nothing: there was none, less was used than
        flowed, or it was so lately that calls of other processes were still on their way.

        While a pool is closed a provider fills up to its burst, and no further.
        """
        if self._at is None or self._open < TELLING_SECONDS or self._slack > NO_SLACK * self._open:
            return None
        return self._flowed / (self._open + min(self._closed, burst_seconds))

    def restart(self, now: float) -> None:
        """Begin again: the provider has nothing left now."""
        self._at = now
        self._open = self._closed = self._slack = self._flowed = 0.0
