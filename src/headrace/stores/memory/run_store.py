"""Runs in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from heapq import nlargest
from itertools import islice
from uuid import UUID

from headrace.model.errors import ConflictError, FenceLostError, NotFoundError
from headrace.model.job import CancelAnswer, JobState
from headrace.model.run import Effects, LiveNode, NewRun, NodeEnding, RunState, RunView, StartedAt, Unsettled
from headrace.model.session import LeaderTerm
from headrace.ports.notifier import Notifier
from headrace.stores.memory import effects, intake
from headrace.stores.memory.endings import owned_job
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.outbox_rows import EVENTS
from headrace.stores.memory.retention import prune_runs
from headrace.stores.memory.runs import Run
from headrace.stores.memory.state import State, atomic
from headrace.stores.memory.views import live_node, run_view, unsettled


class MemoryRunStore:
    """`ports.run_store.RunStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier

    @atomic
    async def start_run(self, run: NewRun) -> UUID:
        """Store a run with its graph and its first jobs, once."""
        state, runs = self._state, self._state.runs
        stored = self._stored(run)
        if stored is not None:
            return stored
        intake.insert_jobs(state, run.jobs)
        runs.rows[run.id] = Run(run, state.now(), run.level, run.reason)
        runs.graphs[run.snapshot] = run.graph
        if run.key is not None:
            runs.keys[run.workflow, run.key] = run.id
        for queue in {job.spec.queue for job in run.jobs}:
            self._notifier.hint(f"queue:{queue}")
        return run.id

    def _stored(self, run: NewRun) -> UUID | None:
        """Return the run that has this one's id or key. Raises ConflictError when that was started with other words."""
        runs = self._state.runs
        if run.id in runs.rows:
            return run.id
        known = None if run.key is None else runs.keys.get((run.workflow, run.key))
        if known is not None and runs.rows[known].new.body_hash != run.body_hash:
            raise ConflictError
        return known

    @atomic
    async def get_run(self, run_id: UUID) -> RunView | None:
        """Return a run."""
        run = self._state.runs.rows.get(run_id)
        return None if run is None else run_view(run)

    @atomic
    async def list_runs(
        self, *, workflow: str | None = None, state: RunState | None = None, key: str | None = None,
        before: StartedAt | None = None, limit: int = 50,
    ) -> list[RunView]:  # fmt: skip
        """Return runs, the newest first."""
        if key is not None:
            known = self._state.runs.keys.get((workflow or "", key))
            return [] if known is None else [run_view(self._state.runs.rows[known])]
        chosen = (
            run
            for run in self._state.runs.rows.values()
            if workflow in (None, run.new.workflow) and state in (None, run.state)
            and (before is None or (run.created_at, run.new.id) < before)
        )  # fmt: skip
        return [run_view(run) for run in nlargest(limit, chosen, key=lambda run: (run.created_at, run.new.id))]

    @atomic
    async def final_runs(self, run_ids: Sequence[UUID]) -> dict[UUID, RunView]:
        """Return those runs that are final."""
        runs = (self._state.runs.rows.get(run_id) for run_id in run_ids)
        return {run.new.id: run_view(run) for run in runs if run is not None and run.state.final}

    @atomic
    async def known_runs(self, run_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those ids that exist."""
        return frozenset(run_id for run_id in run_ids if run_id in self._state.runs.rows)

    @atomic
    async def store_id(self) -> str:
        """Return the id of this memory."""
        return self._state.id

    @atomic
    async def load_graph(self, snapshot: str) -> str | None:
        """Return a graph by its hash."""
        return self._state.runs.graphs.get(snapshot)

    @atomic
    async def read_nodes(self, run_id: UUID, paths: Sequence[str] | None = None) -> list[NodeEnding]:
        """Return how nodes of a run ended, in the order of their ends."""
        run = self._state.runs.rows.get(run_id)
        wanted = None if paths is None else frozenset(paths)
        kept = () if run is None else run.endings.values()
        return [ending for ending in kept if wanted is None or ending.path in wanted]

    @atomic
    async def live_nodes(self, run_id: UUID) -> list[LiveNode]:
        """Return the jobs of a run that are not final."""
        return [live_node(job) for job in self._state.runs.live.get(run_id, {}).values()]

    @atomic
    async def save_nodes(
        self, run_id: UUID, endings: Sequence[NodeEnding], *, job_id: UUID, attempt: int, session: UUID
    ) -> None:
        """Keep how nodes ended, under the fence of the run's job."""
        run = self._state.runs.rows.get(run_id)
        if run is None or owned_job(self._state, job_id, attempt, session) is None:
            raise FenceLostError
        for ending in effects.keep_endings(self._state, run, endings):
            if ending.events:
                self._state.outbox.insert(ending.events, self._state.now())
                self._notifier.hint(EVENTS)

    @atomic
    async def cancel_run(self, run_id: UUID) -> CancelAnswer:
        """Start cancelling a run."""
        run = self._state.runs.rows.get(run_id)
        if run is None:
            raise NotFoundError(f"There is no run {run_id}. It never existed, or its retention is over.")
        if run.state.final:
            return CancelAnswer.ALREADY_FINAL
        run.state = RunState.CANCELLING
        return CancelAnswer.REQUESTED

    @atomic
    async def sweep_runs(self, *, limit: int) -> tuple[list[UUID], bool]:
        """Cancel what waits of runs being cancelled, ask what runs to stop, and end those of which nothing is left."""
        cancelling = [run for run in self._state.runs.rows.values() if run.state is RunState.CANCELLING]
        goes_on = [self._sweep(run, limit) for run in cancelling]
        return [run.new.id for run in cancelling if run.state.final], any(goes_on)

    def _sweep(self, run: Run, limit: int) -> bool:
        """Cancel up to `limit` jobs of a run that wait; return whether more may."""
        state, jobs = self._state, list(self._state.runs.live.get(run.new.id, {}).values())
        waiting = list(islice((job for job in jobs if job.state is not JobState.RUNNING), limit))
        for job in waiting:
            state.finish(job, JobState.CANCELLED)
            state.runs.settle(job.id)
        for job in jobs:
            job.cancel_requested = job.cancel_requested or job.state is JobState.RUNNING
        if run.new.id in state.runs.live:
            return len(waiting) == limit
        effects.end_run(state, run, RunState.CANCELLED)
        return False

    @atomic
    async def unsettled_jobs(self, *, limit: int) -> list[Unsettled]:
        """Return what the store ended by itself, the oldest first."""
        return [unsettled(row) for row in islice(self._state.runs.unsettled.values(), limit)]

    @atomic
    async def settle_jobs(self, settled: Sequence[tuple[UUID, Effects]]) -> list[UUID]:
        """Apply what unsettled jobs set going, each once."""
        applied: list[UUID] = []
        for job_id, sets_going in settled:
            if self._state.runs.settle(job_id):
                effects.apply_effects(self._state, sets_going)
                applied.append(job_id)
        return applied

    @atomic
    async def prune_runs(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove final runs that are old; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        return prune_runs(self._state, older_than=older_than, limit=limit)
