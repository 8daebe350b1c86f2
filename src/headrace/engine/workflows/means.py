"""What the jobs of runs work with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from headrace.engine.values import Values
from headrace.engine.workflows.boards import RunNotes
from headrace.engine.workflows.facts import KnownRuns, RunFacts
from headrace.engine.workflows.inputs import Endings
from headrace.engine.workflows.kinds import ENTRIES_AT_ONCE, Kinds
from headrace.engine.workflows.stored import StoredEndings
from headrace.engine.workflows.waiting import KeepStep, Waits
from headrace.ports.clock import Clock
from headrace.ports.job_store import JobStore
from headrace.ports.run_board import RunBoard
from headrace.ports.stores import Stores


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a run at workflow level is moved on; see `[scheduler.hybrid]` in the settings."""

    #: It ran this long.
    longest: timedelta = timedelta(minutes=5)
    #: Its maps have more entries than this to run.
    most_nodes: int = 10
    #: Nodes of one run that one process runs at once.
    at_once: int = 64
    #: Whether it is never moved for these reasons: `default_mode` is "workflow_level".
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Means:
    """Stores, values and what is known of runs, for one process."""

    stores: Stores
    values: Values
    known: KnownRuns
    clock: Clock
    bounds: Bounds = Bounds()
    #: Where statuses of runs are beside the store; None: nowhere.
    board: RunBoard | None = None
    notes: RunNotes = field(default_factory=lambda: RunNotes(None))

    def stored(self, run_id: UUID) -> StoredEndings:
        """Return the ends of a run's nodes as the store has them."""
        return StoredEndings(self.stores.runs, run_id)

    def kinds(
        self, facts: RunFacts, keep: KeepStep, *, endings: Endings | None = None, chunk: int | None = ENTRIES_AT_ONCE
    ) -> Kinds:
        """Return what runs the nodes of a run that are no tasks."""
        waits = Waits(self.stores.signals, self.clock, keep)
        return Kinds(facts, endings or self.stored(facts.id), self.values, waits, chunk)


@dataclass(frozen=True, slots=True)
class Fence:
    """Under which an attempt of a job keeps what it keeps."""

    jobs: JobStore
    job_id: UUID
    attempt: int
    session: UUID

    async def load(self) -> dict[str, str]:
        """Return what was kept, by name."""
        return await self.jobs.load_steps(self.job_id)

    async def keep(self, name: str, value: str) -> str:
        """Keep a text once by name, and return the one that is kept. Raises FenceLostError."""
        return await self.jobs.save_step(
            self.job_id, attempt=self.attempt, session=self.session, name=name, value=value
        )
