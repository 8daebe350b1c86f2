"""The tables of runs: records, graphs, and indexes over their jobs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from headrace.model.job import JobError
from headrace.model.run import Arrival, Level, NewRun, NodeEnding, RunState
from headrace.stores.memory.rows import Finished, Job


@dataclass(slots=True)
class Sum:
    """How many nodes that a path waits for have not ended, how many fired, and how many must.

    `decided`: its job was inserted, to run or to be passed over.
    """

    remaining: int
    need: int
    fired: int = 0
    decided: bool = False

    def add(self, arrival: Arrival) -> bool:
        """Count an arrival; return whether it decided."""
        self.remaining -= arrival.count
        self.fired += arrival.fired
        before, self.decided = self.decided, self.decided or self.enough or self.remaining <= 0
        return self.decided and not before

    @property
    def enough(self) -> bool:
        """Whether as many fired as must."""
        return self.fired >= self.need


@dataclass(slots=True)
class Run:
    """A run. `endings` are in the order of the ends."""

    new: NewRun
    created_at: datetime
    level: Level
    reason: str
    state: RunState = RunState.RUNNING
    output: str | None = None
    error: JobError | None = None
    finished_at: datetime | None = None
    endings: dict[str, NodeEnding] = field(default_factory=dict)
    sums: dict[str, Sum] = field(default_factory=dict)


@dataclass(slots=True)
class Runs:
    """`live` and `unsettled` are indexes over the jobs of runs, by run and by job."""

    rows: dict[UUID, Run] = field(default_factory=dict)
    graphs: dict[str, str] = field(default_factory=dict)
    #: Runs by workflow and idempotency key.
    keys: dict[tuple[str, str], UUID] = field(default_factory=dict)
    live: defaultdict[UUID, dict[UUID, Job]] = field(default_factory=lambda: defaultdict(dict))
    unsettled: dict[UUID, Finished] = field(default_factory=dict)

    def add_job(self, job: Job) -> None:
        """Note a job that was inserted."""
        if job.run_id is not None:
            self.live[job.run_id][job.id] = job

    def end_job(self, row: Finished) -> None:
        """Note a job that ended, as unsettled."""
        run_id = row.job.run_id
        if run_id is None:
            return
        del self.live[run_id][row.job.id]
        if not self.live[run_id]:
            del self.live[run_id]
        self.unsettled[row.job.id] = row

    def settle(self, job_id: UUID) -> bool:
        """Note that it is known what the end of a job sets going; return whether it was not."""
        return self.unsettled.pop(job_id, None) is not None
