"""The run store port on Redis: runs of workflows, how their nodes ended, and what of them is not settled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from heapq import nlargest
from uuid import UUID

from headrace.model.errors import ConflictError, FenceLostError, NotFoundError
from headrace.model.job import CancelAnswer
from headrace.model.run import Effects, LiveNode, NewRun, NodeEnding, RunState, RunView, StartedAt, Unsettled
from headrace.model.session import LeaderTerm
from headrace.stores.redis import pruning
from headrace.stores.redis.endings import effects_words, in_parts, job_words, node_words, size_of
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.notifier import RedisNotifier
from headrace.stores.redis.rows import micros, parse_id, to_json
from headrace.stores.redis.run_rows import live_node, node_ending, run_fields, run_view, unsettled
from headrace.stores.redis.views import fields

#: What one script reads at most: rows of fixed size, and rows with texts of the caller's.
PAGE, TEXTS = 500, 200
#: Jobs that one script cancels at most, and endings that one keeps: more would hold up everybody else.
SWEEP_PART, SAVED_PART = 100, 1_000


class RedisRunStore:
    """Durable runs. What the end of a node's job sets going is applied by the script that ends the job."""

    def __init__(self, namespace: Namespace, notifier: RedisNotifier) -> None:
        self._namespace, self._notifier = namespace, notifier

    async def start_run(self, run: NewRun) -> UUID:
        """Store a run, the snapshot of its graph and its first jobs, and hint; return its id."""
        new = {
            "fields": run_fields(run),
            "state": RunState.RUNNING.value,
            "snapshot": run.snapshot,
            "graph": run.graph,
            **job_words(run.jobs),
        }
        verdict, stored = await self._namespace.run(
            "start_run", run.id.hex, run.workflow, run.key or "", run.body_hash, to_json(new)
        )
        if verdict == "conflict":
            raise ConflictError(
                f"The run {parse_id(stored)} of workflow {run.workflow!r} was started before under the key "
                f"{run.key!r} with another input. Use a new key, or send the first input again."
            )
        if verdict == "started":
            for queue in sorted({job.spec.queue for job in run.jobs}):
                self._notifier.hint(f"queue:{queue}")
        return parse_id(stored)

    async def get_run(self, run_id: UUID) -> RunView | None:
        """Return a run."""
        runs = await self._read_runs([run_id.hex])
        return runs[0] if runs else None

    async def list_runs(
        self, *, workflow: str | None = None, state: RunState | None = None, key: str | None = None,
        before: StartedAt | None = None, limit: int = 50,
    ) -> list[RunView]:  # fmt: skip
        """Return runs, the newest first: of each state the newest are found, and of these the newest of all."""
        if key is not None:
            known = await self._namespace.run("find_run", workflow or "", key)
            return [] if known is None else await self._read_runs([known])
        states = [one.value for one in RunState if state in (None, one)]
        place = ("", "") if before is None else (micros(before[0]), before[1].hex)
        found = await self._namespace.run("find_runs", workflow or "", limit, *place, *states)
        newest = nlargest(limit, {(int(at), run_id) for at, run_id in zip(found[::2], found[1::2], strict=True)})
        runs = await self._read_runs([run_id for _, run_id in newest])
        # Between finding and reading a run may have moved on.
        return [run for run in runs if state in (None, run.state)]

    async def final_runs(self, run_ids: Sequence[UUID]) -> dict[UUID, RunView]:
        """Return those of `run_ids` that are final."""
        runs = await self._read_runs([run_id.hex for run_id in run_ids], final=True)
        return {run.id: run for run in runs}

    async def _read_runs(self, ids: Sequence[str], *, final: bool = False) -> list[RunView]:
        runs: list[RunView] = []
        place = 0
        while place < len(ids):
            page = ids[place : place + TEXTS]
            seen, rows = await self._namespace.run("read_runs", "1" if final else "", *page)
            runs += [run_view(run_id, fields(row)) for run_id, row in rows]
            place += seen
        return runs

    async def known_runs(self, run_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those of `run_ids` that exist."""
        known: list[str] = []
        for start in range(0, len(run_ids), PAGE):
            known += await self._namespace.run("known_runs", *(each.hex for each in run_ids[start : start + PAGE]))
        return frozenset(map(parse_id, known))

    async def store_id(self) -> str:
        """Return the id of this store's data: its epoch."""
        return self._namespace.epoch

    async def load_graph(self, snapshot: str) -> str | None:
        """Return the graph, JSON text, whose hash is `snapshot`."""
        text: str | None = await self._namespace.run("load_graph", snapshot)
        return text

    async def read_nodes(self, run_id: UUID, paths: Sequence[str] | None = None) -> list[NodeEnding]:
        """Return how nodes of a run ended, in the order of their ends."""
        found: dict[str, str] = {}
        place, seen = 0, 1
        while seen and (paths is None or place < len(paths)):
            page = () if paths is None else paths[place : place + PAGE]
            seen, *rows = await self._namespace.run("read_nodes", run_id.hex, place, PAGE, *page)
            found |= zip(rows[::2], rows[1::2], strict=True)
            place += seen
        numbered = [node_ending(path, stored) for path, stored in found.items()]
        return [ending for _, ending in sorted(numbered, key=lambda pair: pair[0])]

    async def live_nodes(self, run_id: UUID) -> list[LiveNode]:
        """Return the jobs of a run that are not final, by their ids."""
        found: dict[UUID, LiveNode] = {}
        cursor = None
        while cursor != "0":
            cursor, rows = await self._namespace.run("live_nodes", run_id.hex, cursor or "0", PAGE)
            found |= {node.job_id: node for node in (live_node(*row) for row in rows)}
        return [found[job_id] for job_id in sorted(found) if not found[job_id].state.final]

    async def save_nodes(
        self, run_id: UUID, endings: Sequence[NodeEnding], *, job_id: UUID, attempt: int, session: UUID
    ) -> None:
        """Keep how nodes ended that the run's own job ran; raises FenceLostError when the attempt lost its job."""
        fence = (job_id.hex, str(attempt), session.hex)
        for start in range(0, len(endings), SAVED_PART):
            words = to_json(node_words(endings[start : start + SAVED_PART]))
            if not await self._namespace.run("save_nodes", run_id.hex, *fence, words):
                raise FenceLostError

    async def cancel_run(self, run_id: UUID) -> CancelAnswer:
        """Start cancelling a run. Raises NotFoundError."""
        verdict = await self._namespace.run("cancel_run", run_id.hex)
        if verdict == "missing":
            raise NotFoundError(f"There is no run {run_id}. It never existed, or its retention is over.")
        return CancelAnswer(verdict)

    async def sweep_runs(self, *, limit: int) -> tuple[list[UUID], bool]:
        """Go on with runs that are being cancelled; return those that ended by it, and whether more jobs may wait."""
        swept = {run_id: await self._sweep(run_id, limit) for run_id in await self._namespace.run("cancelling_runs")}
        ended = [parse_id(run_id) for run_id, (_, over) in swept.items() if over]
        return ended, any(cancelled == limit and not over for cancelled, over in swept.values())

    async def _sweep(self, run_id: str, limit: int) -> tuple[int, bool]:
        """Cancel up to `limit` jobs of a run that wait, part by part; return how many, and whether the run ended."""
        cancelled, ended = 0, 0
        while cancelled < limit:
            part = min(SWEEP_PART, limit - cancelled)
            count, ended = await self._namespace.run("sweep_run", run_id, part)
            cancelled += count
            if count < part or ended:
                break
        return cancelled, bool(ended)

    async def unsettled_jobs(self, *, limit: int) -> list[Unsettled]:
        """Return jobs of runs that the store ended without effects, the oldest first."""
        jobs: list[Unsettled] = []
        while len(jobs) < limit:
            part = min(TEXTS, limit - len(jobs))
            rows = await self._namespace.run("unsettled_jobs", len(jobs), part)
            jobs += [unsettled(*row) for row in rows]
            if len(rows) < part:
                break
        return jobs

    async def settle_jobs(self, settled: Sequence[tuple[UUID, Effects]]) -> list[UUID]:
        """Apply what the ends of unsettled jobs set going, each once; return those applied."""
        applied: list[str] = []
        for part in in_parts(settled, lambda one: size_of(one[1])):
            words = [[job_id.hex, effects_words(effects)] for job_id, effects in part]
            applied += await self._namespace.run("settle_jobs", to_json(words))
        return [parse_id(job_id) for job_id in applied]

    async def prune_runs(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` final runs that ended longer ago, with their nodes and snapshots that nothing uses."""
        return await pruning.prune_runs(self._namespace, older_than, limit=limit, term=term)
