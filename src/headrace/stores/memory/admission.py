"""The gate in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from headrace.model.admission import (
    Admitted,
    BreakerView,
    CapView,
    Explanation,
    LimitKind,
    LimitsView,
    RateView,
    ShareView,
)
from headrace.model.breaker import BreakerRecord, BreakerReport, BreakerState, opened, record_call
from headrace.model.elastic import Eligible
from headrace.model.errors import NotFoundError
from headrace.model.job import Claim
from headrace.model.limits import Declared, Level, Rate
from headrace.stores.memory import admitting, eligible, explaining
from headrace.stores.memory.breakers import Breaker
from headrace.stores.memory.caps import Usage, count_usage
from headrace.stores.memory.state import State, atomic


class MemoryAdmission:
    """`ports.admission.Admission` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    @atomic
    async def admit_jobs(self, claim: Claim, *, grants: Mapping[str, float] | None = None) -> Admitted:
        """Start what the gate lets pass."""
        return await admitting.admit_jobs(self._state, claim, grants)

    @atomic
    async def declare_limits(self, declared: Declared) -> None:
        """Store what an app declares; what operators set stays in force."""
        limits = self._state.limits
        limits.declared_caps.update(declared.caps)
        for name, rate in declared.rates.items():
            limits.buckets.declare(name, rate, self._state.now())
        for key, rule in declared.breakers.items():
            limits.breakers.setdefault(key, Breaker(rule)).rule = rule
        for name in (*declared.caps, *declared.rates):
            limits.gate_queue_of(name)

    @atomic
    async def report_calls(self, reports: Sequence[BreakerReport]) -> None:
        """Count endings of attempts behind breakers."""
        for report in reports:
            breaker = self._state.limits.breakers.get(report.key)
            if breaker is not None:
                breaker.record = record_call(breaker.rule, breaker.record, report, self._state.now())

    @atomic
    async def explain_job(self, job_id: UUID, *, levels: Mapping[str, Level] | None = None) -> Explanation | None:
        """Say why a job is not running."""
        return explaining.explain_job(self._state, job_id, levels)

    @atomic
    async def eligible_jobs(self, queue: str, *, at_most: int, levels: Mapping[str, Level] | None = None) -> Eligible:
        """Count what could start if there were slots."""
        return eligible.eligible_jobs(self._state, queue, at_most, levels)

    @atomic
    async def list_limits(self, *, most_shares: int | None = None) -> LimitsView:
        """Return limits as they stand."""
        limits, usage = self._state.limits, count_usage(self._state)
        caps = sorted({*limits.declared_caps, *limits.cap_overrides})
        return LimitsView(
            caps=tuple(_cap_view(self._state, key, usage) for key in caps),
            rates=_rate_views(self._state),
            breakers=tuple(BreakerView(key, row.rule, row.record) for key, row in sorted(limits.breakers.items())),
            shares=tuple(ShareView(queue, *share) for queue in sorted(limits.shares) for share in
                         limits.shares[queue].named())[:most_shares],
        )  # fmt: skip

    @atomic
    async def list_rates(self) -> tuple[RateView, ...]:
        """Return the rates alone."""
        return _rate_views(self._state)

    @atomic
    async def set_cap(self, key: str, cap: int | None) -> None:
        """Override a cap, or return to the declared one."""
        if cap is None:
            self._state.limits.cap_overrides.pop(key, None)
        else:
            self._state.limits.cap_overrides[key] = cap
            self._state.limits.gate_queue_of(key)

    @atomic
    async def set_rate(self, name: str, rate: Rate | None) -> None:
        """Override a rate, or return to the declared one."""
        self._state.limits.buckets.override(name, rate, self._state.now())
        if rate is not None:
            self._state.limits.gate_queue_of(name)

    @atomic
    async def set_weight(self, queue: str, fair_key: str, weight: float) -> None:
        """Set the weight of a fair key in a queue."""
        self._state.limits.shares[queue].weigh(fair_key, weight)

    @atomic
    async def set_breaker(self, key: str, state: BreakerState) -> None:
        """Open or close a breaker by hand."""
        breaker = self._state.limits.breakers.get(key)
        if breaker is None:
            raise NotFoundError(f"There is no circuit breaker {key!r}. It is declared by a worker whose tasks name it.")
        closing = state is BreakerState.CLOSED
        breaker.record = BreakerRecord() if closing else opened(breaker.rule, self._state.now())

    @atomic
    async def forget_limit(self, name: str) -> frozenset[LimitKind]:
        """Remove a cap, rate or breaker."""
        return self._state.limits.forget(name)


def _cap_view(state: State, key: str, usage: Usage) -> CapView:
    limits = state.limits
    return CapView(key, limits.declared_caps.get(key), limits.cap_overrides.get(key), usage.of(key))


def _rate_views(state: State) -> tuple[RateView, ...]:
    now, buckets = state.now(), sorted(state.limits.buckets.items())
    return tuple(
        RateView(name, bucket.declared, bucket.override, bucket.level_at(now), bucket.closed_until)
        for name, bucket in buckets
    )
