"""What the gate answers: jobs that may start, why one may not, and how limits stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from headrace.model.breaker import BreakerRecord, BreakerRule
from headrace.model.job import ClaimedJob, JobState
from headrace.model.limits import Rate


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer to `Admission.admit_jobs`."""

    #: running now, in the order in which they were admitted
    jobs: list[ClaimedJob]
    #: False: this queue has no gate, `claim_jobs` is the way
    gated: bool = True
    #: When something that waits will be let through by time alone (a bucket fills, a breaker tries again): from now.
    #: Zero: there is more to admit at once. None: only an event (a job ends, a job comes, a change) brings more.
    look_in: timedelta | None = None
    #: units used of the grants that were given, by bucket
    spent: Mapping[str, float] = field(default_factory=dict)
    #: What grants were too few for: by bucket, the units of the job that waits for nothing but rates and has them next.
    short: Mapping[str, float] = field(default_factory=dict)


class WaitReason(StrEnum):
    """Why a job is not running: the first that holds, in this order."""

    #: it has ended
    FINAL = "final"
    #: it is running
    RUNNING = "running"
    #: its batch is paused
    BATCH_PAUSED = "batch_paused"
    #: it waits for its time (run_at, snooze or the backoff of a retry)
    SCHEDULED = "scheduled"
    #: it waits for a signal, for a time without a slot, or for whichever comes first
    PARKED = "parked"
    #: its queue is paused
    PAUSED = "paused"
    #: its batch is being cancelled
    CANCELLING = "cancelling"
    #: a circuit breaker is open, or waits for its probe
    BREAKER = "breaker"
    #: a rate limit has not enough units
    RATE = "rate"
    #: as many run as a cap allows
    CAP = "cap"
    #: nothing holds it back, but no live worker serves its queue
    NO_WORKER = "no_worker"
    #: nothing holds it back: it is next, or others come before it
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The one reason why a job is not running, by the predicate that admits jobs.

    `subject` names what holds it back (the queue, cap, bucket, breaker, batch, signal), `until` says when that ends if
    time alone ends it, `facts` holds the numbers: `cap` and `running`, `ahead` (jobs with the same gate before it, at
    most 1,000 counted), `others` (whether jobs with other gates wait in its queue), `held_by` (the job that keeps an
    in-order key), `paused_reason`, `units`, `level` (None: the server beside the store that counts it is away, and
    nothing passes).
    """

    job_id: UUID
    state: JobState
    reason: WaitReason
    subject: str | None = None
    until: datetime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CapView:
    """A cap, for reading: `declared` in code, `override` by an operator, `running` now."""

    key: str
    declared: int | None
    override: int | None
    running: int

    @property
    def cap(self) -> int | None:
        """The cap in force."""
        return self.declared if self.override is None else self.override


@dataclass(frozen=True, slots=True)
class RateView:
    """A rate limit, for reading."""

    name: str
    declared: Rate | None
    override: Rate | None
    #: units it has; None: the server beside the store that counts it is away
    level: float | None
    closed_until: datetime | None = None

    @property
    def rate(self) -> Rate | None:
        """The rate in force."""
        return self.declared if self.override is None else self.override


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A circuit breaker, for reading."""

    key: str
    rule: BreakerRule
    record: BreakerRecord


@dataclass(frozen=True, slots=True)
class ShareView:
    """A fair key of a queue, for reading. Its finish tag is in units of cost per weight."""

    queue: str
    fair_key: str
    weight: float
    finish: float


class LimitKind(StrEnum):
    """What a name of a limit may stand for; it may be several at once."""

    CAP = "cap"
    RATE = "rate"
    BREAKER = "breaker"


@dataclass(frozen=True, slots=True)
class LimitsView:
    """All limits of a store, each kind by name."""

    caps: tuple[CapView, ...] = ()
    rates: tuple[RateView, ...] = ()
    breakers: tuple[BreakerView, ...] = ()
    shares: tuple[ShareView, ...] = ()
