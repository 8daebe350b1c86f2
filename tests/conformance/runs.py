"""What tests of runs do again and again: start runs, claim the jobs of nodes, end them with effects, look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from headrace.model.ids import uuid7s
from headrace.model.job import ClaimedJob, Completion, JobState, NewJob, Park
from headrace.model.run import (
    NODE_TASK,
    Arrival,
    Effects,
    Level,
    LiveNode,
    NewRun,
    NodeEnding,
    NodeState,
    RunState,
    RunView,
    Unsettled,
)
from headrace.ports.run_store import RunStore
from tests.conformance.scenario import ALL, ARGS, DAY, SPEC, Scenario

GRAPH = '{"nodes": []}'
CONTEXT = '{"user_id": "u1"}'


def node_job(run_id: UUID | None, node: str | None, **facts: Any) -> NewJob:
    """Return a job of a node; names that are none of a job go to its specification."""
    own = {name: facts.pop(name) for name in ("id", "run_at", "args") if name in facts}
    return NewJob(replace(SPEC, **facts), **{"args": ARGS, **own}, run_id=run_id, node=node)


def new_run(*nodes: str | None, **facts: Any) -> NewRun:
    """Return a run of workflow `w` whose first jobs are those of `nodes`, in this order, all with the facts "spec"."""
    spec = facts.pop("spec", {})
    shared = {"workflow": "w", "version": 1, "snapshot": "s1", "graph": GRAPH, "input": '{"n": 1}', "context": CONTEXT}
    run = NewRun(**{**shared, "level": Level.NODE, "reason": "small", "jobs": (), **facts})
    if nodes:
        ids = uuid7s(len(nodes))
        run.jobs = tuple(node_job(run.id, node, id=new, **spec) for new, node in zip(ids, nodes, strict=True))
    return run


def success(path: str, output: str | None = "1", **facts: Any) -> NodeEnding:
    """Return the ending of a node that succeeded."""
    return NodeEnding(path, NodeState.SUCCESS, output, **facts)


def arrival(run_id: UUID, path: str, total: int, need: int, *, fired: int = 0, count: int = 1, **job: Any) -> Arrival:
    """Return an arrival at a path with the job of its node."""
    return Arrival(path, total, need, node_job(run_id, path, **job), count, fired)


def is_passed_over(job: ClaimedJob) -> bool:
    """Whether the job passes its node over."""
    return (job.task, job.queue) == (NODE_TASK, "nodes")


class Runs:
    """Short words for what is done with runs on the stores of a scenario, under one session that lives for long."""

    def __init__(self, on: Scenario) -> None:
        self.on = on
        self._session: UUID | None = None

    @property
    def store(self) -> RunStore:
        """Return the run store of the backend."""
        return self.on.stores.runs

    async def session(self) -> UUID:
        """Return the session under which everything runs."""
        if self._session is None:
            self._session = await self.on.worker(lease=1_000 * DAY, host="runs")
        return self._session

    async def start(self, *nodes: str | None, **facts: Any) -> UUID:
        """Start a run whose first jobs are those of `nodes`, and return its id."""
        return await self.store.start_run(new_run(*nodes, **facts))

    async def claim(self, *, queue: str = "default") -> list[ClaimedJob]:
        """Claim all that is ready in a queue."""
        return await self.on.claim(await self.session(), queue=queue)

    async def begin(self, *nodes: str | None, **facts: Any) -> tuple[UUID, list[ClaimedJob]]:
        """Start a run and claim its first jobs; return them in the order of `nodes`."""
        run_id = await self.start(*nodes, **facts)
        queue = facts.get("spec", {}).get("queue", "default")
        jobs = {job.node: job for job in await self.claim(queue=queue) if job.run_id == run_id}
        return run_id, [jobs[node] for node in nodes]

    async def complete(self, *completions: Completion) -> list[UUID]:
        """Complete jobs in one call."""
        return await self.on.stores.jobs.complete_jobs(await self.session(), completions)

    async def done(self, job: ClaimedJob, state: JobState = JobState.SUCCEEDED, **effects: Any) -> list[UUID]:
        """End a job with these effects, which may be none."""
        return await self.complete(with_effects(job, state, **effects))

    async def lose(self, job: ClaimedJob, state: JobState = JobState.FAILED, **facts: Any) -> list[UUID]:
        """End a job, or send it back, without a word on what that sets going."""
        return await self.complete(Completion(job.id, job.attempt, state, **facts))

    async def park(self, job: ClaimedJob, park: Park, **facts: Any) -> list[UUID]:
        """Park a job."""
        return await self.lose(job, JobState.PARKED, park=park, **facts)

    async def run(self, run_id: UUID) -> RunView:
        """Return a run that must exist."""
        view = await self.store.get_run(run_id)
        assert view is not None
        return view

    async def live(self, run_id: UUID) -> dict[str | None, LiveNode]:
        """Return the live jobs of a run by their nodes."""
        rows = await self.store.live_nodes(run_id)
        by_node = {row.node: row for row in rows}
        assert len(by_node) == len(rows)
        return by_node

    async def paths(self, run_id: UUID) -> list[str]:
        """Return the paths that have an ending, in the order of the ends."""
        return [ending.path for ending in await self.store.read_nodes(run_id)]

    async def unsettled(self) -> list[Unsettled]:
        """Return all that is unsettled."""
        return await self.store.unsettled_jobs(limit=ALL)

    async def swept(self, *, limit: int = ALL) -> list[UUID]:
        """Sweep once and return the runs that ended by it."""
        ended, _ = await self.store.sweep_runs(limit=limit)
        return ended

    async def sweep(self, run_id: UUID, *, limit: int = ALL) -> None:
        """Sweep until a run that is being cancelled is cancelled; it must be named once, by the sweep that ended it."""
        named: list[UUID] = []
        for _ in range(10):
            named += await self.swept(limit=limit)
            if (await self.run(run_id)).state is RunState.CANCELLED:
                break
        assert named.count(run_id) == 1


def with_effects(job: ClaimedJob, state: JobState = JobState.SUCCEEDED, **effects: Any) -> Completion:
    """Return the ending of a job with these effects in its run."""
    assert job.run_id is not None
    return Completion(job.id, job.attempt, state, effects=Effects(job.run_id, **effects))
