"""The run store port on PostgreSQL: runs of workflows, how their nodes ended, and what of them is not settled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from headrace.model.errors import ConflictError, FenceLostError, NotFoundError
from headrace.model.job import CancelAnswer, JobState
from headrace.model.run import Effects, LiveNode, NewRun, NodeEnding, RunState, RunView, StartedAt, Unsettled
from headrace.model.session import LeaderTerm
from headrace.stores.postgres import event_rows, intake
from headrace.stores.postgres.completion import apply_effects
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.effects import ending_values
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.outbox import EVENTS
from headrace.stores.postgres.queries import Runner
from headrace.stores.postgres.rows import decode_error, node_ending, run_view
from headrace.stores.postgres.terms import hold_term

#: Runs that one transaction removes: each may have thousands of nodes.
_RUNS_AT_ONCE = 20


class PostgresRunStore:
    """`ports.run_store.RunStore`; `hot` has connections with pinned plans.

    Locks: jobs and rows of history by id, then sums of arrivals by run and path, then runs. A cancel of a run and what
    settles jobs of it take turns on its row; the end of a job does not: what it inserts the next sweep meets.
    """

    def __init__(self, database: Database, hot: Database, notifier: PostgresNotifier) -> None:
        self._database, self._hot, self._notifier = database, hot, notifier
        self._id = ""

    async def start_run(self, run: NewRun) -> UUID:
        """Store a run, its snapshot and its first jobs in one transaction, and hint; return its id."""

        async def work(tx: Transaction) -> tuple[UUID, bool]:
            stored = run.id if run.key is None else await _claim_key(tx, run, run.key)
            if stored != run.id or not await _insert_run(tx, run):
                return stored, False
            await intake.insert_with(tx, run.jobs, retrying=False)
            return stored, True

        stored, started = await self._database.run(work)
        if started:
            for queue in {job.spec.queue for job in run.jobs}:
                self._notifier.hint(f"queue:{queue}")
        return stored

    async def get_run(self, run_id: UUID) -> RunView | None:
        """Return a run."""
        row = await self._database.fetch_one("get_run", run_id=run_id)
        return None if row is None else run_view(row)

    async def list_runs(
        self, *, workflow: str | None = None, state: RunState | None = None, key: str | None = None,
        before: StartedAt | None = None, limit: int = 50,
    ) -> list[RunView]:  # fmt: skip
        """Return runs, the newest first."""
        if key is not None:
            row = await self._database.fetch_one("find_run", workflow=workflow, key=key)
            return [] if row is None else [run_view(row)]
        at, run_id = before or (None, None)
        rows = await self._database.fetch(
            "list_runs", workflow=workflow, state=state, before_at=at, before_id=run_id, limit=limit
        )
        return [run_view(row) for row in rows]

    async def final_runs(self, run_ids: Sequence[UUID]) -> dict[UUID, RunView]:
        """Return those of `run_ids` that are final."""
        rows = await self._database.fetch("final_runs", run_ids=list(run_ids))
        return {row["id"]: run_view(row) for row in rows}

    async def known_runs(self, run_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those of `run_ids` that exist."""
        return frozenset(row["id"] for row in await self._database.fetch("known_runs", run_ids=list(run_ids)))

    async def store_id(self) -> str:
        """Return the id of this schema, which its migrations made."""
        if not self._id:
            row = await self._database.fetch_one("store_id")
            assert row is not None, "the first migration is always there"
            self._id = row["store_id"].hex
        return self._id

    async def load_graph(self, snapshot: str) -> str | None:
        """Return the graph whose hash is `snapshot`."""
        row = await self._database.fetch_one("load_graph", snapshot=snapshot)
        return None if row is None else str(row["graph"])

    async def read_nodes(self, run_id: UUID, paths: Sequence[str] | None = None) -> list[NodeEnding]:
        """Return how nodes of a run ended, in the order of their ends."""
        if paths is None:
            rows = await self._hot.fetch("read_nodes", run_id=run_id)
        else:
            rows = await self._hot.fetch("find_nodes", run_id=run_id, paths=list(paths))
        return [node_ending(row) for row in rows]

    async def live_nodes(self, run_id: UUID) -> list[LiveNode]:
        """Return the jobs of a run that are not final."""
        rows = await self._hot.fetch("live_nodes", run_id=run_id)
        return [LiveNode(**{**dict(row), "state": JobState(row["state"])}) for row in rows]

    async def save_nodes(
        self, run_id: UUID, endings: Sequence[NodeEnding], *, job_id: UUID, attempt: int, session: UUID
    ) -> None:
        """Keep how nodes ended that the run's own job ran, under the fence of that job."""
        leaving = any(ending.events for ending in endings)

        async def save(runner: Runner) -> bool:
            fence = {"run_id": run_id, "job_id": job_id, "attempt": attempt, "session": session}
            return await _save_nodes(runner, endings, **fence)

        if not await (self._hot.run(save) if leaving else save(self._hot)):
            raise FenceLostError
        if leaving:
            self._notifier.hint(EVENTS)

    async def cancel_run(self, run_id: UUID) -> CancelAnswer:
        """Start cancelling a run. Raises NotFoundError."""
        if await self._database.fetch("cancel_run", run_id=run_id):
            return CancelAnswer.REQUESTED
        run = await self.get_run(run_id)
        if run is None:
            raise NotFoundError(f"There is no run {run_id}. `headrace run list` shows those that exist.")
        return CancelAnswer.ALREADY_FINAL if run.state.final else CancelAnswer.REQUESTED

    async def sweep_runs(self, *, limit: int) -> tuple[list[UUID], bool]:
        """Go on with runs that are being cancelled; return those that ended by it, and whether more jobs may wait."""
        stopped = await self._database.fetch("cancel_run_jobs", limit=limit)
        if not stopped:
            return [], False
        ended = [row["id"] for row in await self._database.fetch("end_cancelled_runs")]
        full = {row["id"] for row in stopped if row["cancelled"] == limit}
        return ended, not full.issubset(ended)

    async def unsettled_jobs(self, *, limit: int) -> list[Unsettled]:
        """Return jobs of runs that the store ended without effects, the oldest first."""
        rows = await self._database.fetch("unsettled_jobs", limit=limit)
        return [
            Unsettled(**{**dict(row), "state": JobState(row["state"]), "error": decode_error(row["error"])})
            for row in rows
        ]

    async def settle_jobs(self, settled: Sequence[tuple[UUID, Effects]]) -> list[UUID]:
        """Apply what the ends of unsettled jobs set going, in one transaction each job once; return those applied."""
        effects = dict(settled)
        run_ids = list({each.run_id for each in effects.values()})

        async def work(tx: Transaction) -> list[UUID]:
            await tx.fetch("hold_runs", run_ids=run_ids)
            marked = {row["id"] for row in await tx.fetch("settle_jobs", job_ids=list(effects))}
            ours = [job_id for job_id in effects if job_id in marked]
            if ours:
                await apply_effects(tx, [effects[job_id] for job_id in ours])
            return ours

        return await self._hot.run(work) if effects else []

    async def prune_runs(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` final runs that ended longer ago, with their nodes, and snapshots that nothing uses."""
        removed = 0
        while removed < limit:
            most = min(_RUNS_AT_ONCE, limit - removed)
            gone = await self._database.run(partial(_prune, older_than=older_than, limit=most, term=term))
            removed += gone
            if gone < most:
                break
        return removed


async def _prune(tx: Transaction, *, older_than: timedelta, limit: int, term: LeaderTerm | None) -> int:
    if term is not None and not await hold_term(tx, term):
        return 0
    rows = await tx.fetch("prune_runs", retention=older_than, limit=limit)
    hashes = list({row["snapshot"] for row in rows})
    held = await tx.fetch("hold_snapshots", hashes=hashes) if hashes else []
    if held:
        await tx.fetch("prune_snapshots", hashes=[row["hash"] for row in held])
    return len(rows)


async def _save_nodes(runner: Runner, endings: Sequence[NodeEnding], **values: Any) -> bool:
    """Keep endings, and put the events of those that were kept into the outbox; False: the fence is lost."""
    rows = await runner.fetch("save_nodes", **values, **ending_values(endings))
    if rows and any(ending.events for ending in endings):
        first = {ending.path: ending for ending in reversed(endings)}  # of two endings of a path the first one stands
        await event_rows.insert_with(runner, [event for path in rows[0]["kept"] for event in first[path].events])
    return bool(rows)


async def _claim_key(tx: Transaction, run: NewRun, key: str) -> UUID:
    """Return the id of the run that the key stands for; raise ConflictError for another body."""
    name = {"scopes": [f"run:{run.workflow}"], "keys": [key]}
    # It lives as long as its run.
    if await intake.insert_keys(tx, **name, ids=[run.id], hashes=[run.body_hash], lifetime=None):
        return run.id
    _, _, stored, body_hash = (await tx.fetch("find_keys", **name))[0]
    if body_hash != run.body_hash:
        raise ConflictError(
            f"The idempotency key {key!r} of workflow {run.workflow!r} was used before with another body (run "
            f"{stored}). Use a new key, or send the first body again."
        )
    return UUID(str(stored))


async def _insert_run(tx: Transaction, run: NewRun) -> bool:
    """Insert the record of a run; return whether it was not there."""
    rows = await tx.fetch(
        "insert_run", id=run.id, workflow=run.workflow, version=run.version, snapshot=run.snapshot, graph=run.graph,
        level=run.level, reason=run.reason, input=run.input, context=run.context, key=run.key, rerun_of=run.rerun_of,
        rerun_from=run.rerun_from,
    )  # fmt: skip
    return bool(rows)
