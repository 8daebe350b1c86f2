"""The run store port: runs of workflows, how their nodes ended, and what of them is not settled.

What the end of a node's job sets going travels with the completion of the job (`Completion.effects`, see
`JobStore.complete_jobs`); here is everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from headrace.model.job import CancelAnswer
from headrace.model.run import Effects, LiveNode, NewRun, NodeEnding, RunState, RunView, StartedAt, Unsettled
from headrace.model.session import LeaderTerm


class RunStore(Protocol):
    """Durable runs. All methods raise StoreUnavailableError when the store cannot answer."""

    async def start_run(self, run: NewRun) -> UUID:
        """Store a run, the snapshot of its graph and its first jobs in one transaction, and hint; return its id.

        With a key that is known for the workflow nothing is stored and the id of then is returned; with another body
        ConflictError is raised. Safe to call again with the same run after an answer was lost.
        """
        ...

    async def get_run(self, run_id: UUID) -> RunView | None:
        """Return a run."""
        ...

    async def list_runs(
        self, *, workflow: str | None = None, state: RunState | None = None, key: str | None = None,
        before: StartedAt | None = None, limit: int = 50,
    ) -> list[RunView]:  # fmt: skip
        """Return runs, the newest first; `before`: those behind that place, which is the last of another page.

        `key`, which goes with a workflow alone: the run that was started under it, if there is one.
        """
        ...

    async def final_runs(self, run_ids: Sequence[UUID]) -> dict[UUID, RunView]:
        """Return those of `run_ids` that are final; one query for all waiters of a process."""
        ...

    async def known_runs(self, run_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those of `run_ids` that exist."""
        ...

    async def store_id(self) -> str:
        """Return the id of this store's data, letters and digits: made once, and no other store has it.

        What lies outside of the store, in a place that others may use too, lies below it.
        """
        ...

    async def load_graph(self, snapshot: str) -> str | None:
        """Return the graph, JSON text, whose hash is `snapshot`."""
        ...

    async def read_nodes(self, run_id: UUID, paths: Sequence[str] | None = None) -> list[NodeEnding]:
        """Return how nodes of a run ended, in the order of their ends; of those of `paths` that have, or of all."""
        ...

    async def live_nodes(self, run_id: UUID) -> list[LiveNode]:
        """Return the jobs of a run that are not final."""
        ...

    async def save_nodes(
        self, run_id: UUID, endings: Sequence[NodeEnding], *, job_id: UUID, attempt: int, session: UUID
    ) -> None:
        """Keep how nodes ended that the run's own job ran, under the fence of that job.

        A path that has an ending keeps it. Raises FenceLostError when the attempt no longer owns the job.
        """
        ...

    async def cancel_run(self, run_id: UUID) -> CancelAnswer:
        """Start cancelling a run: from now on nothing of it is inserted. `sweep_runs` does the rest.

        Raises NotFoundError.
        """
        ...

    async def sweep_runs(self, *, limit: int) -> tuple[list[UUID], bool]:
        """Go on with runs that are being cancelled; return those that ended by it, now cancelled, and whether to go on.

        Of each, up to `limit` jobs that wait are cancelled and those that run are asked to stop; one without live jobs
        ends. To go on: of one that did not end as many as `limit` were cancelled, and more may wait. Cheap where
        nothing is being cancelled.
        """
        ...

    async def unsettled_jobs(self, *, limit: int) -> list[Unsettled]:
        """Return jobs of runs that the store ended without effects, the oldest first. Cheap where there are none."""
        ...

    async def settle_jobs(self, settled: Sequence[tuple[UUID, Effects]]) -> list[UUID]:
        """Apply what the ends of unsettled jobs set going, in one transaction each job once; return those applied."""
        ...

    async def prune_runs(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` final runs that ended longer ago, with their nodes, and snapshots that nothing uses.

        Under a `term` that is over nothing is removed; None is an operator, who needs none.
        """
        ...
