"""Read models of queues and of what a sweep did."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from headrace.model.backlog import Alarm
from headrace.model.capability import Capability


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One queue at one moment. Rates are per second over the last minute, or the part of it that was looked at."""

    name: str
    scheduled: int
    ready: int
    running: int
    parked: int
    succeeded: int
    failed: int
    cancelled: int
    #: Age of the job that has been ready longest, or None when none is.
    oldest_ready_age: timedelta | None
    rate_in: float
    rate_out: float
    live_workers: int
    paused: bool
    paused_reason: str | None = None
    #: Nothing is enqueued any more; see `headrace queue drain`.
    closed: bool = False
    #: When the backlog is an alarm, or None for never.
    alarm_size: int | None = None
    alarm_age: timedelta | None = None
    #: Whether it is one now.
    alarmed: bool = field(init=False)
    #: The figures that are estimates, by name: a store that is big does not count everything.
    estimated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rings = self.alarm.rings(self.ready, self.oldest_ready_age)
        object.__setattr__(self, "alarmed", rings)

    @property
    def alarm(self) -> Alarm:
        """When the backlog is an alarm."""
        return Alarm(self.alarm_size, self.alarm_age)


@dataclass(frozen=True, slots=True)
class Rescued:
    """What one sweep took back: jobs sent back to ready, jobs failed, their queues and batches."""

    released: tuple[UUID, ...] = ()
    failed: tuple[UUID, ...] = ()
    queues: frozenset[str] = frozenset()
    batches: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class Retention:
    """How long history is kept, per final state; batches follow their jobs."""

    succeeded: timedelta = timedelta(days=7)
    failed: timedelta = timedelta(days=30)
    cancelled: timedelta = timedelta(days=7)
    answers: timedelta = timedelta(days=30)

    @property
    def kept_answers(self) -> timedelta:
        """How long paid answers are kept: never shorter than any job that may ask for them again.

        >>> Retention(failed=timedelta(days=90)).kept_answers.days
        90
        """
        return max(self.answers, self.succeeded, self.failed, self.cancelled)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows one prune removed, by what they were."""

    removed: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Rows removed in all."""
        return sum(self.removed.values())


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What `doctor` says of a store."""

    kind: str
    version: str
    schema_version: int
    durable: bool
    #: What the store guarantees or lacks, in words people know.
    notes: tuple[str, ...] = ()
    now: datetime | None = None
    capabilities: frozenset[Capability] = frozenset()

    @property
    def lacks(self) -> tuple[Capability, ...]:
        """What this store cannot do, as it is set up now."""
        return tuple(capability for capability in Capability if capability not in self.capabilities)
