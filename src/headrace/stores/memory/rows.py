"""The rows of the memory store: hot jobs apart from finished ones, as in the durable stores."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.model.backlog import NO_ALARM, Alarm
from headrace.model.batch import BatchOutcome, BatchState, NewBatch
from headrace.model.job import JobError, JobSpec, JobState
from headrace.model.session import NewSession


@dataclass(slots=True)
class Job:
    """A job that is not final. Once it is, nothing writes to it any more: `Finished` holds it as it was."""

    id: UUID
    spec: JobSpec
    args: str
    created_at: datetime
    state: JobState = JobState.READY
    run_at: datetime | None = None
    #: Ready time less the head start of the priority: the claim order.
    sort_at: datetime | None = None
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    #: Crashes while alone in a child process, since the last progress.
    lone_crashes: int = 0
    session: UUID | None = None
    started_at: datetime | None = None
    cancel_requested: bool = False
    batch_id: UUID | None = None
    ordinal: int | None = None
    retry_of: UUID | None = None
    run_id: UUID | None = None
    node: str | None = None
    #: The signal that a parked job waits for.
    parked_on: str | None = None

    @property
    def keeps_place(self) -> bool:
        """Whether it ran before and has an in-order key, which it keeps with its place until it has ended."""
        return self.attempt > 0 and self.spec.gate is not None and self.spec.gate.in_order


@dataclass(frozen=True, slots=True)
class Finished:
    """A final job. `commit` numbers the endings of the store in the order they were recorded."""

    job: Job
    state: JobState
    commit: int
    finished_at: datetime
    result: str | None = None
    error: JobError | None = None
    usage: str | None = None


@dataclass(slots=True)
class Batch:
    """A batch. `live` and `ended` are indexes over the jobs; `counts` counts the endings that stand (not retried)."""

    new: NewBatch
    created_at: datetime
    #: When the submitter was last heard of.
    touched_at: datetime
    state: BatchState = BatchState.OPEN
    outcome: BatchOutcome | None = None
    total: int | None = None
    round: int = 1
    #: The first ordinal of each named round, in their order.
    rounds: dict[str, int] = field(default_factory=dict)
    sealed_at: datetime | None = None
    closed_at: datetime | None = None
    paused_at: datetime | None = None
    paused_reason: str | None = None
    #: (length, hash) of each slice by its first ordinal.
    slices: dict[int, tuple[int, str]] = field(default_factory=dict)
    appended: int = 0
    #: The ordinal after the last: more than were appended where some are missing in between.
    reach: int = 0
    live: dict[UUID, Job] = field(default_factory=dict)
    ended: list[Finished] = field(default_factory=list)
    counts: Counter[JobState] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Key:
    """What an idempotency key stands for; without `expires_at` it lives as long as what it names."""

    id: UUID
    body_hash: str
    expires_at: datetime | None


@dataclass(slots=True)
class Session:
    """A registered session."""

    new: NewSession
    started_at: datetime
    expires_at: datetime
    stats: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leader:
    """Who led last. Terms only grow, also across a resignation."""

    session: UUID
    term: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """What an operator or an app set for a queue."""

    paused: bool = False
    reason: str | None = None
    closed: bool = False
    alarm: Alarm = NO_ALARM
