"""Circuit breakers: their rules, their records, and whether one lets a job pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from headrace.model.breaker import BreakerRecord, BreakerRule, BreakerState, OnOpen


@dataclass(slots=True)
class Breaker:
    """A declared breaker and where it stands."""

    rule: BreakerRule
    record: BreakerRecord = field(default_factory=BreakerRecord)

    @property
    def refuses(self) -> bool:
        """Whether jobs that it does not let pass are failed instead of waiting."""
        return self.rule.on_open is OnOpen.FAIL

    def passes(self, now: datetime, runs: Callable[[UUID, int], bool]) -> bool:
        """Whether it lets a job pass; `runs` says whether an attempt still runs, as a probe has to."""
        record = self.record
        if record.state is BreakerState.OPEN:
            return record.retry_at is None or record.retry_at <= now
        return record.state is BreakerState.CLOSED or record.probe is None or not runs(*record.probe)

    @property
    def until(self) -> datetime | None:
        """When it tries again; None while its probe is under way."""
        return self.record.retry_at if self.record.state is BreakerState.OPEN else None

    def started(self, job_id: UUID, attempt: int) -> None:
        """Take note of an attempt that it let pass: the probe, unless the breaker is closed."""
        if self.record.state is not BreakerState.CLOSED:
            self.record = replace(self.record, state=BreakerState.HALF_OPEN, probe=(job_id, attempt))
