"""Jobs as values: what goes into the store, what a worker claims, and how an attempt ends.

Those made once per job are not frozen, though nobody changes them: making a frozen dataclass takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.model.ids import node_identity, uuid7
from headrace.model.limits import Gate

if TYPE_CHECKING:
    from headrace.model.event import Outgoing
    from headrace.model.run import Effects

#: How long the key of a single job is remembered, whatever became of the job.
KEY_LIFETIME = timedelta(days=7)


class JobState(StrEnum):
    """`scheduled → ready → running → succeeded | failed | cancelled`; `running → parked → ready`."""

    #: waits for its time (run_at, or the backoff of a retry)
    SCHEDULED = "scheduled"
    #: may be claimed now
    READY = "ready"
    #: claimed by a session
    RUNNING = "running"
    #: waits without a slot
    PARKED = "parked"
    #: final: has a result
    SUCCEEDED = "succeeded"
    #: final: has an error; a dead letter
    FAILED = "failed"
    #: final: was not wanted any more
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the state never changes again."""
        return self in _FINAL


_FINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What all jobs of one submit share; stores write it once per statement rather than once per row."""

    task: str
    queue: str = "default"
    priority: int = 5
    max_attempts: int = 4
    #: Longest run of one attempt, counted from its start; None: the worker's `max_processing_time`.
    timeout: timedelta | None = None
    #: A job whose worker died is failed rather than run again.
    at_most_once: bool = False
    #: What must let the job pass before it starts; None: nothing, and it costs nothing.
    gate: Gate | None = None
    #: How much of its fair key's share one job uses, and of limits that take the job's cost: tokens, for example.
    cost: float = 1.0


@dataclass(slots=True)
class NewJob:
    """One job to insert. `args` is the JSON text of {"args": […], "kwargs": {…}}."""

    spec: JobSpec
    args: str
    id: UUID = field(default_factory=uuid7)
    #: Not before this instant (aware), or None for now.
    run_at: datetime | None = None
    #: Idempotency key, unique per task, with the hash of what was asked.
    key: str | None = None
    body_hash: str = ""
    #: The run it belongs to, and the path of its node there; a run's own job has none.
    run_id: UUID | None = None
    node: str | None = None
    #: What the release before took for `body_hash`, where that differs: a key that it stored stands for this body, too.
    former_hash: str = ""

    def has_body(self, stored: str) -> bool:
        """Whether a stored hash is that of what this job was asked for."""
        return stored == self.body_hash or (self.former_hash != "" and stored == self.former_hash)


#: A place among jobs or batches by when they were made.
Made = tuple[datetime, UUID]
#: A place in the claim order: earlier `sort_at` first, then the lower id.
Place = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class Claim:
    """A request for jobs: at most `limit` of `queue`, for `session`.

    `after` leaves out ready jobs up to a place that was claimed just before, which spares the store a walk past what
    has gone; not for long: jobs may come before that place. A gate ignores it.
    """

    session: UUID
    queue: str
    limit: int
    after: Place | None = None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The run that a task is a node of, and what its starter gave along."""

    id: UUID
    workflow: str
    #: The path of the node in the run, such as "fetch" or "pages[3]/parse".
    node: str
    user_id: str | None = None
    correlation_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> UUID:
        """What stands for the node in the run, whichever job calls it."""
        return node_identity(self.id, self.node)


@dataclass(slots=True)
class ClaimedJob:
    """A job as its worker sees it. (id, attempt, session) is the fence of every later write."""

    id: UUID
    task: str
    queue: str
    args: str
    attempt: int
    failures: int
    crashes: int
    max_attempts: int
    timeout: timedelta | None
    cancel_requested: bool
    batch_id: UUID | None = None
    ordinal: int | None = None
    sort_at: datetime | None = None
    run_id: UUID | None = None
    node: str | None = None
    #: It came through the gate: its end may let others pass.
    gated: bool = False
    #: Why it must be failed without running: the breaker that is open.
    refused: str | None = None
    #: Names of its steps begin with this: of a run's job, those of one node.
    step_prefix: str = ""
    #: What its handler is told of its run; the engine finds out before it runs.
    run: RunInfo | None = None

    @property
    def place(self) -> Place | None:
        """Its place in the claim order; None where that is not known, in a child process."""
        return None if self.sort_at is None else (self.sort_at, self.id)


@dataclass(frozen=True, slots=True)
class JobError:
    """Why an attempt ended without a result. `kind` is a class or rule name, `trace` is for people."""

    kind: str
    message: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Park:
    """What a job waits for without a slot: a signal, a time, or whichever comes first.

    A signal that is there already wakes it at once. With neither it waits until it is cancelled.
    """

    #: The signal's key.
    key: str | None = None
    #: From now on, by the store's clock.
    wait: timedelta | None = None


@dataclass(slots=True)
class Completion:
    """How one attempt ended. A final `state` moves the job to history, the others send it back.

    PARKED has a `park`; nothing is charged then.

    `charged` counts a failure against max_attempts. `lone_crash` says that the job's own child process died;
    `progressed` that it stored a checkpoint or an answer before, which clears that count.
    """

    job_id: UUID
    attempt: int
    state: JobState
    result: str | None = None
    error: JobError | None = None
    delay: timedelta = timedelta()
    charged: bool = False
    lone_crash: bool = False
    progressed: bool = False
    usage: str | None = None
    batch_id: UUID | None = None
    #: Whether it shows that what stands behind the task's breakers works; None: it says nothing. Not stored.
    works: bool | None = None
    #: Whether it left its slot for a quota or a budget. Not stored.
    limited: bool = False
    #: What a final ending of a job of a run sets going there. Without them the store keeps the job as unsettled.
    effects: Effects | None = None
    park: Park | None = None
    #: What leaves with it through the outbox; only of a success.
    events: tuple[Outgoing, ...] = ()
    #: The output port that the handler named. Not stored.
    port: str = "main"
    #: What its handler logged, as `model.attempt_log` writes it; None where it logged nothing.
    log: str | None = None

    @property
    def released(self) -> bool:
        """Whether the job goes back as it was, because its worker stops: it keeps its place among the ready ones."""
        return self.state is JobState.READY and not self.charged and not self.delay


class CancelAnswer(StrEnum):
    """What a cancel did."""

    #: the job had not started: it is final now
    CANCELLED = "cancelled"
    #: its worker was asked to stop it
    REQUESTED = "requested"
    #: it had ended before
    ALREADY_FINAL = "already_final"


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One ended attempt of a job, kept for those that failed, crashed or were lost and for the one that ended it.

    `outcome` is `failed`, `crashed` or `lost` (with the farm that ran it; uncharged), or the final state of the job.
    """

    attempt: int
    outcome: str
    started_at: datetime | None
    finished_at: datetime
    session: UUID | None
    error: JobError | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """Everything known of one job, for reading."""

    id: UUID
    task: str
    queue: str
    state: JobState
    priority: int
    attempt: int
    failures: int
    crashes: int
    max_attempts: int
    created_at: datetime
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    session: UUID | None
    args: Any
    result: Any
    error: JobError | None
    batch_id: UUID | None
    ordinal: int | None
    retry_of: UUID | None
    cancel_requested: bool
    usage: Any = None
    run_id: UUID | None = None
    node: str | None = None
