"""What the jobs of runs are to a worker: its own tasks, and the parts that attempts of users' tasks play in a run."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.engine.attempt import Attempt
from headrace.engine.attempts import AttemptFactory
from headrace.engine.registry import RunsIn, TaskDef
from headrace.engine.workflows.inline import GraphRun, HeldEndings
from headrace.engine.workflows.inline_calls import InlineCalls
from headrace.engine.workflows.means import Fence, Means
from headrace.engine.workflows.node_part import NodePart
from headrace.engine.workflows.saving import Saver
from headrace.engine.workflows.task_part import TaskPart
from headrace.engine.workflows.tries import Tries
from headrace.model.backoff import Backoff
from headrace.model.job import ClaimedJob, Completion, JobSpec, JobState
from headrace.model.run import NODE_SPEC, NODE_TASK, RUN_SPEC, RUN_TASK, START_SPEC

#: Starts a workflow by name with an input, once per key.
StartByName = Callable[[str, Any, str], Awaitable[UUID]]
#: What ends an attempt of one of our own tasks is trouble with the store: it is tried again for minutes.
_BACKOFF = Backoff.exponential(max_attempts=100, base="500ms", cap="30s")


class RunParts:
    """Gives attempts of jobs of runs what they need beside their task."""

    def __init__(self, means: Means, start: StartByName) -> None:
        self._means, self._start = means, start
        self._tasks = {spec.task: _task(spec) for spec in (RUN_SPEC, NODE_SPEC, START_SPEC)}

    def task(self, name: str) -> TaskDef | None:
        """Return one of our own tasks."""
        return self._tasks.get(name)

    def join(self, attempt: Attempt, factory: AttemptFactory) -> None:
        """Let an attempt play its part: of a task's node, or as one of our own tasks."""
        job = attempt.job
        if job.task not in self._tasks:
            assert job.run_id is not None
            assert job.node is not None
            attempt.part = TaskPart(self._means, job.run_id, job.node)
            return
        attempt.call = replace(attempt.call, invoke=lambda: self._run(attempt, factory))

    def ended(self, completions: Sequence[Completion], parked: Mapping[UUID, ClaimedJob]) -> None:
        """Note completions that have been recorded; `parked`: the jobs of runs among them that were parked, by id."""
        run_of = {job.id: (job.run_id, job.node) for job in parked.values() if job.run_id and job.node}
        self._means.notes.note(completions, run_of)

    async def _run(self, attempt: Attempt, factory: AttemptFactory) -> Completion:
        job = attempt.job
        if job.run_id is None:
            return await self._follow(attempt)
        if job.task == NODE_TASK:
            assert job.node is not None
            return await NodePart(self._means, job.run_id, job.node).run(attempt)
        assert job.task == RUN_TASK
        run = await self._graph_run(attempt, factory)
        return await run.run()

    async def _follow(self, attempt: Attempt) -> Completion:
        """Start the workflow that is to follow a run that failed."""
        name, given, key = json.loads(attempt.job.args)["args"]
        started = await self._start(name, given, key)
        return Completion(attempt.job.id, attempt.job.attempt, JobState.SUCCEEDED, result=json.dumps(str(started)))

    async def _graph_run(self, attempt: Attempt, factory: AttemptFactory) -> GraphRun:
        means, job, session = self._means, attempt.job, attempt.call.session
        assert job.run_id is not None
        facts = await means.known.get(job.run_id)
        stored = await means.stores.runs.read_nodes(facts.id)
        steps = await means.stores.jobs.load_steps(job.id)
        fence = Fence(means.stores.jobs, job.id, job.attempt, session)
        ends = HeldEndings({ending.path: ending for ending in stored})
        kinds = means.kinds(facts, fence.keep, endings=ends, chunk=None)
        calls = InlineCalls(means, facts, kinds, attempt, factory, fence, Tries.of(steps))
        saver = Saver(means.stores.runs, facts.id, job.id, job.attempt, session, means.notes)
        return GraphRun(means, facts, attempt, calls, saver, kinds, ends)


def _task(spec: JobSpec) -> TaskDef:
    # Defined in here, so that no other process can find it: a child has none of what it works with.
    async def work() -> None:
        raise AssertionError("run by RunParts")

    return TaskDef(spec.task, work, RunsIn.LOOP, replace(spec, timeout=spec.timeout or timedelta(days=1)), _BACKOFF)
