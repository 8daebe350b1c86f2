"""Runs of workflows as values: what starts one, what a node ends with, and what the end of a node sets going.

The store counts and the engine decides: a node that ends names whom it arrives at (`Arrival`), the store sums arrivals
and inserts the job of whoever has had enough of them, in the same transaction as the end of the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from headrace.model.event import Outgoing
from headrace.model.ids import uuid7
from headrace.model.job import JobError, JobSpec, JobState, NewJob

#: Whole runs at workflow level wait here, and ...
WORKFLOWS_QUEUE = "workflows"
#: ... nodes that are no tasks: maps, loops, waits, the ends of graphs.
NODES_QUEUE = "nodes"
RUN_TASK, NODE_TASK, START_TASK = "headrace.run", "headrace.node", "headrace.start"
#: What runs a node that is no task, and what passes one over.
NODE_SPEC = JobSpec(NODE_TASK, NODES_QUEUE, max_attempts=10, timeout=timedelta(minutes=10))
#: What works a whole run; a node of it that is lost is run again.
RUN_SPEC = JobSpec(RUN_TASK, WORKFLOWS_QUEUE, max_attempts=10, timeout=timedelta(days=1))
#: What starts another run.
START_SPEC = JobSpec(START_TASK, NODES_QUEUE, max_attempts=10, timeout=timedelta(minutes=1))
#: Arguments of a node's job that are to be taken from the graph.
UNBOUND = '{"args":[],"kwargs":{}}'


class RunState(StrEnum):
    """`running → succeeded | failed | cancelled`, the last by way of `cancelling`."""

    RUNNING = "running"
    #: nothing of it starts any more; it is cancelled once nothing of it runs
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the state never changes again."""
        return self not in (RunState.RUNNING, RunState.CANCELLING)


class Level(StrEnum):
    """How a run is worked: by one job in one process, or node by node, each a job."""

    WORKFLOW = "workflow_level"
    NODE = "node_level"


class NodeState(StrEnum):
    """What has become of a node of a run. Only the last four are stored; the others follow from its job."""

    PENDING = "pending"
    RUNNING = "running"
    PARKED = "parked"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def final(self) -> bool:
        """Whether the state never changes again."""
        return self not in (NodeState.PENDING, NodeState.RUNNING, NodeState.PARKED)


@dataclass(slots=True)
class NodeEnding:
    """How a node of a run ended, or, at a path that ends in "@", what a graph within it was given."""

    path: str
    state: NodeState
    #: JSON text of the value, or of a reference to it.
    output: str | None = None
    #: The output port it left by.
    port: str = "main"
    error: JobError | None = None
    #: Hash of what determines the output: task, version and arguments.
    artifact: str = ""
    attempts: int = 0
    #: Taken over from the run that this one repeats.
    reused: bool = False
    started_at: datetime | None = None
    #: The store's time of the end; set by the store.
    finished_at: datetime | None = None
    #: What leaves with it through the outbox, where `RunStore.save_nodes` keeps it; else `Completion.events` has them.
    events: tuple[Outgoing, ...] = ()


@dataclass(slots=True)
class Arrival:
    """`count` of the `total` nodes that `path` waits for have ended, and `fired` of these lead to it.

    Whoever has had `need` that fired is ready: its job is inserted, once. When all have arrived and fewer fired it is
    passed over: the job is inserted with `NODE_SPEC`. The sums of a path begin with its first arrival.
    """

    path: str
    total: int
    need: int
    #: None: it was decided before, and its job is inserted or even over; this only counts.
    job: NewJob | None
    count: int = 1
    fired: int = 0


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended. `output` is JSON text."""

    state: RunState
    output: str | None = None
    error: JobError | None = None


@dataclass(slots=True)
class Effects:
    """What the end of a job sets going in its run, in the same transaction; only while the run is `running`.

    Of a run that is not, endings alone are kept, those of paths that have none.
    """

    run_id: UUID
    endings: tuple[NodeEnding, ...] = ()
    arrivals: tuple[Arrival, ...] = ()
    #: Inserted as they are.
    jobs: tuple[NewJob, ...] = ()
    #: Steps that jobs among these begin with: job, name, JSON text.
    steps: tuple[tuple[UUID, str, str], ...] = ()
    #: The run goes on at this level, for this reason.
    level: Level | None = None
    reason: str = ""
    ending: RunEnding | None = None


@dataclass(slots=True)
class NewRun:
    """A run to start: its record, the graph as it is now, and its first jobs, in one transaction."""

    workflow: str
    version: int
    #: Hash of `graph`, JSON text, which is stored once.
    snapshot: str
    graph: str
    #: JSON text, as is `context`: {"user_id", "correlation_id", "metadata"}.
    input: str
    context: str
    level: Level
    reason: str
    jobs: tuple[NewJob, ...]
    id: UUID = field(default_factory=uuid7)
    #: Idempotency key, unique per workflow, with the hash of what was asked.
    key: str | None = None
    body_hash: str = ""
    #: The run it repeats, and the node from which it does.
    rerun_of: UUID | None = None
    rerun_from: str | None = None


#: A place in the order of runs, newest first: when one was started, and its id.
StartedAt = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything known of a run but its nodes, for reading. `input`, `context` and `output` are JSON texts."""

    id: UUID
    workflow: str
    version: int
    snapshot: str
    state: RunState
    level: Level
    reason: str
    input: str
    context: str
    output: str | None
    error: JobError | None
    key: str | None
    rerun_of: UUID | None
    rerun_from: str | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A job of a run that is not final. `node` is None for the one that works a whole run."""

    job_id: UUID
    node: str | None
    state: JobState
    queue: str
    attempt: int
    failures: int
    started_at: datetime | None
    run_at: datetime | None
    #: The signal it waits for.
    parked_on: str | None = None


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A job of a run that the store ended by itself: cancelled, or with a worker or its time lost.

    What that sets going in the run has not been decided yet.
    """

    job_id: UUID
    run_id: UUID
    node: str | None
    state: JobState
    error: JobError | None
    attempt: int


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How far a run is, for those who look often: the state of each path that has begun, and what waits for which
    signal. It may be a moment late."""

    state: RunState
    nodes: Mapping[str, NodeState]
    #: Keys of signals by the path that waits.
    waits: Mapping[str, str]

    @property
    def counts(self) -> dict[NodeState, int]:
        """How many paths are in each state."""
        return dict(Counter(self.nodes.values()))


@dataclass(frozen=True, slots=True)
class RunChange:
    """What has changed of a run's status. `state` None: not that."""

    run_id: UUID
    nodes: Mapping[str, NodeState]
    waits: Mapping[str, str] = field(default_factory=dict)
    state: RunState | None = None


@dataclass(frozen=True, slots=True)
class WorkflowEntry:
    """A workflow's latest version, as lists have it: without its graph."""

    name: str
    version: int
    snapshot: str
    active: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredWorkflow:
    """A workflow's definition. `graph` is JSON text, `snapshot` its hash; versions count from 1."""

    name: str
    version: int
    snapshot: str
    graph: str
    active: bool
    created_at: datetime
