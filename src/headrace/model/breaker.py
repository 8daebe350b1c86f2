"""The circuit breaker: which reports open it, and how it closes again. Pure rules; stores keep the records.

Closed, it counts. Open, it lets nothing pass until `retry_at`. Then exactly one job passes as the probe (half-open):
its success closes the breaker, its failure opens it for another cooldown. A probe that ended without either (it was
snoozed, cancelled, its worker died) gives the place to the next one. A 429 is no failure: it is never reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole


class OnOpen(StrEnum):
    """What becomes of jobs behind an open breaker."""

    #: they wait until it closes
    WAIT = "wait"
    #: they fail with kind `breaker_open`, without running
    FAIL = "fail"


class BreakerState(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    #: one job is under way as the probe
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerRule:
    """When a breaker opens, and for how long.

    It opens after `failures` failures in a row, or, with `error_rate`, when of at least `min_calls` calls within
    `window` more than that share failed.

    >>> BreakerRule(failures=3).cooldown
    datetime.timedelta(seconds=30)
    """

    failures: int = 5
    error_rate: float | None = None
    min_calls: int = 10
    window: timedelta = timedelta(minutes=1)
    cooldown: timedelta = timedelta(seconds=30)
    on_open: OnOpen = OnOpen.WAIT

    def __post_init__(self) -> None:
        for name, value in (("failures", self.failures), ("min_calls", self.min_calls)):
            check_whole(f"breaker.{name}", value, most=1_000_000)
        rate = self.error_rate
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1):
            raise InvalidInputError("breaker.error_rate", "must be between 0 and 1", rate)
        for name, span in (("window", self.window), ("cooldown", self.cooldown)):
            if not isinstance(span, timedelta) or span <= timedelta():
                raise InvalidInputError(f"breaker.{name}", "must be a timedelta longer than zero", span)


@dataclass(frozen=True, slots=True)
class BreakerRecord:
    """What a store keeps of one breaker. `probe` is (job id, attempt) while one is under way."""

    state: BreakerState = BreakerState.CLOSED
    #: failures since the last success
    failures: int = 0
    #: calls and errors of the window that began at `window_at`
    calls: int = 0
    errors: int = 0
    window_at: datetime | None = None
    #: when a probe may pass
    retry_at: datetime | None = None
    probe: tuple[UUID, int] | None = None


@dataclass(frozen=True, slots=True)
class BreakerReport:
    """How one attempt behind a breaker ended. Neutral endings (429, snooze, cancel, release) are not reported."""

    key: str
    job_id: UUID
    attempt: int
    succeeded: bool


def record_call(rule: BreakerRule, record: BreakerRecord, report: BreakerReport, now: datetime) -> BreakerRecord:
    """Return the record after one report.

    Reports of jobs that started before the breaker opened change nothing while it is not closed.
    """
    if record.state is not BreakerState.CLOSED:
        if record.probe != (report.job_id, report.attempt):
            return record
        return BreakerRecord() if report.succeeded else opened(rule, now)
    fresh = record.window_at is None or now - record.window_at >= rule.window
    calls, errors = (0, 0) if fresh else (record.calls, record.errors)
    counted = replace(
        record,
        failures=0 if report.succeeded else record.failures + 1,
        calls=calls + 1,
        errors=errors + (not report.succeeded),
        window_at=now if fresh else record.window_at,
    )
    return opened(rule, now) if _trips(rule, counted) else counted


def opened(rule: BreakerRule, now: datetime) -> BreakerRecord:
    """Return the record of a breaker that opens now."""
    return BreakerRecord(BreakerState.OPEN, retry_at=now + rule.cooldown)


def _trips(rule: BreakerRule, record: BreakerRecord) -> bool:
    if record.failures >= rule.failures:
        return True
    return rule.error_rate is not None and record.calls >= rule.min_calls and (
        record.errors / record.calls > rule.error_rate
    )  # fmt: skip
