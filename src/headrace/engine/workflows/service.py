"""Starting, repeating, cancelling and signalling runs: what façade, command line and service share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.engine.codec import jsonable
from headrace.engine.retrying import with_retries
from headrace.engine.workflows.facts import RunFacts, Start, spec_facts
from headrace.engine.workflows.means import Means
from headrace.engine.workflows.origins import Origin
from headrace.model.errors import InvalidInputError, NotFoundError, WorkflowNotActiveError
from headrace.model.graph.form import encode_graph, parse_graph
from headrace.model.graph.layout import Layout
from headrace.model.graph.levels import LevelSettings, choose_level
from headrace.model.graph.nodes import Container, Graph, TaskNode
from headrace.model.ids import uuid7
from headrace.model.job import CancelAnswer, JobSpec, NewJob
from headrace.model.names import check_key, check_name
from headrace.model.payload import encode_json, hash_text
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.model.run import RUN_SPEC, UNBOUND, Level, NewRun, NodeState, RunState, RunView, StoredWorkflow
from headrace.model.webhook import QUEUE, run_job

#: Returns how the jobs of a task are stored, None for one that nobody knows here.
SpecOf = Callable[[str], JobSpec | None]
#: Jobs of a run that one sweep cancels, and sweeps of one cancel; what then still waits is left to the settlers.
CANCEL_SLICE, MOST_SWEEPS = 1_000, 100


@dataclass(frozen=True, slots=True)
class StartOptions:
    """What goes along with a start."""

    key: str | None = None
    user_id: str | None = None
    correlation_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: A URL, which was checked, that is told of the run's end.
    webhook: str | None = None
    #: The run's id, unless the key was used before.
    run_id: UUID = field(default_factory=uuid7)
    #: More metadata, which may be another one each time that a start with a key is repeated.
    aside: Mapping[str, Any] = field(default_factory=dict)
    #: The priority of its tasks' jobs, where their nodes name none; also another one each time.
    priority: int | None = None

    @property
    def body(self) -> tuple[str, ...]:
        """What has to be the same, besides the input, whenever the key is used again."""
        facts = {"user_id": self.user_id, "correlation_id": self.correlation_id, "metadata": dict(self.metadata)}
        given = {name: value for name, value in facts.items() if value not in (None, {})}
        told = () if self.webhook is None else (self.webhook,)
        return (*told, encode_json(given, field="metadata")) if given else told


class RunService:
    """Everything that is done to runs from outside."""

    def __init__(self, means: Means, spec_of: SpecOf, levels: LevelSettings, alone: Callable[[str], bool]) -> None:
        """`alone`: whether a task needs a job of its own, by its name."""
        self._means, self._spec_of, self._levels, self._alone = means, spec_of, levels, alone

    async def save(self, name: str, graph: Graph) -> StoredWorkflow:
        """Store a definition and return it."""
        text, snapshot = encode_graph(graph)
        return await self._means.stores.workflows.save_workflow(check_name("workflow", name), text, snapshot)

    async def start(self, name: str, graph: Graph | None, given: Any, options: StartOptions) -> UUID:
        """Start a run of a workflow and return its id once it is stored; `graph` None: as it is stored.

        Raises NotFoundError, WorkflowNotActiveError, InvalidInputError, ConflictError.
        """
        stores = self._means.stores
        stored = await stores.workflows.get_workflow(name) if graph is None else await self.save(name, graph)
        if stored is None:
            raise NotFoundError(f"no workflow {name!r} is stored; `headrace workflow list` shows those there are")
        if not stored.active:
            raise WorkflowNotActiveError(
                f"workflow {name!r} is switched off; switch it on with `headrace workflow activate {name}`"
            )
        text = encode_json(given, field="input", default=jsonable, most=MAX_VALUE_BYTES)
        context = self._context(parse_graph(json.loads(stored.graph)), options)
        body = hash_text(name, text, *options.body) if options.key is not None else ""
        return await self._start(stored, text, context, options, body)

    def _context(self, graph: Graph, options: StartOptions) -> dict[str, Any]:
        """Return what the run's nodes are told beside its input, and how its tasks' jobs are stored."""
        tasks = {}
        for name in tasks_of(graph):
            spec = self._spec_of(name)
            if spec is None:
                raise InvalidInputError("workflow", "names a task that this app does not know; import its module", name)
            if options.priority is not None:
                spec = replace(spec, priority=options.priority)
            # Kept with the run: who repeats it may know no tasks.
            tasks[name] = spec_facts(spec) | ({"own": True} if self._alone(name) else {})
        return {
            "user_id": options.user_id,
            "correlation_id": options.correlation_id,
            "metadata": {**options.metadata, **options.aside},
            "tasks": tasks,
        } | ({} if options.webhook is None else {"webhook": options.webhook})

    async def _start(  # noqa: PLR0913 - facts of one run
        self, stored: StoredWorkflow, text: str, context: Mapping[str, Any], options: StartOptions, body_hash: str,
        again: tuple[UUID, str | None] | None = None,
    ) -> UUID:  # fmt: skip
        run_id, key = options.run_id, options.key
        layout = Layout(parse_graph(json.loads(stored.graph)))
        own = sorted(name for name, facts in context["tasks"].items() if facts.get("own"))
        level, reason = await self._choose(stored, layout.graph, own)
        rerun_of, rerun_from = again or (None, None)
        run = NewRun(
            workflow=stored.name, version=stored.version, snapshot=stored.snapshot, graph=stored.graph,
            input=await self._means.values.store(run_id, text), context=encode_json(context, field="metadata"),
            level=level, reason=reason, jobs=(), id=run_id,
            key=None if key is None else check_key("key", key), body_hash=body_hash,
            rerun_of=rerun_of, rerun_from=rerun_from,
        )  # fmt: skip
        run.jobs = self._first_jobs(run, layout)
        return await with_retries(lambda _: self._means.stores.runs.start_run(run))

    def _first_jobs(self, run: NewRun, layout: Layout) -> tuple[NewJob, ...]:
        if run.level is Level.WORKFLOW:
            return (NewJob(RUN_SPEC, UNBOUND, run_id=run.id),)
        facts = RunFacts(run, layout, self._means.known.strategy)
        return tuple(facts.jobs([Start(name) for name in layout.roots]))

    async def _choose(self, stored: StoredWorkflow, graph: Graph, own: Sequence[str]) -> tuple[Level, str]:
        estimates = await self._measured(stored, graph)
        return choose_level(graph, settings=self._levels, estimates=estimates, own_jobs=own)

    async def _measured(self, stored: StoredWorkflow, graph: Graph) -> dict[str, timedelta]:
        """Return how long tasks took in the latest run of the workflow that succeeded, where that would decide."""
        if self._levels.default_mode != "hybrid" or len(graph.nodes) > self._levels.most_nodes:
            return {}
        runs = self._means.stores.runs
        latest = await runs.list_runs(workflow=stored.name, state=RunState.SUCCEEDED, limit=1)
        if not latest or latest[0].snapshot != stored.snapshot:
            return {}
        tasks = {node.id: node.task for node in graph.nodes if isinstance(node, TaskNode)}
        found: dict[str, timedelta] = {}
        for ending in await runs.read_nodes(latest[0].id, sorted(tasks)):
            if ending.state is NodeState.SUCCESS and ending.started_at and ending.finished_at and not ending.reused:
                took = ending.finished_at - ending.started_at
                found[tasks[ending.path]] = max(took, found.get(tasks[ending.path], took))
        return found

    async def get(self, run_id: UUID) -> RunView:
        """Return a run. Raises NotFoundError."""
        view = await self._means.stores.runs.get_run(run_id)
        if view is None:
            raise NotFoundError(f"no run {run_id}; `headrace run list` shows those there are")
        return view

    async def find(self, workflow: str, key: str) -> UUID | None:
        """Return the run that was started under a key, while it is kept."""
        found = await self._means.stores.runs.list_runs(workflow=check_name("workflow", workflow), key=key)
        return found[0].id if found else None

    async def rerun(self, run_id: UUID, first: str | None = None, *, key: str | None = None) -> UUID:
        """Run the graph of a final run once more, on the same input, and return the new run's id.

        Nodes that are given what they were given before keep their output, and nothing is paid for them; from node
        `first` on they run again, and those behind it where what they are given has changed. None: only what did not
        succeed runs. `key`: as of `start`. Raises NotFoundError, InvalidInputError, ConflictError.
        """
        view = await self.get(run_id)
        if not view.state.final:
            raise InvalidInputError("run", "must have ended before it is repeated; cancel it, or wait", str(run_id))
        layout = await self._means.known.layout(view.snapshot)
        if first is not None:
            await Origin(self._means.stores.runs, view.id, first).check(layout)
        graph = await self._means.stores.runs.load_graph(view.snapshot)
        assert graph is not None
        stored = StoredWorkflow(
            view.workflow, view.version, view.snapshot, graph, active=True, created_at=view.created_at
        )
        given = await self._means.values.load(view.input)
        text = encode_json(given, field="input", most=MAX_VALUE_BYTES)
        body = "" if key is None else hash_text("rerun", str(run_id), first or "")
        return await self._start(stored, text, json.loads(view.context), StartOptions(key), body, (view.id, first))

    async def cancel(self, run_id: UUID) -> CancelAnswer:
        """Cancel a run: what waits ends at once, what runs is asked to stop. Raises NotFoundError."""
        stores = self._means.stores
        await self._tell_of_cancel(run_id)
        answer = await stores.runs.cancel_run(run_id)
        for _ in range(MOST_SWEEPS):
            _, goes_on = await stores.runs.sweep_runs(limit=CANCEL_SLICE)
            if not goes_on:
                break
        stores.notifier.hint("done")
        return answer

    async def _tell_of_cancel(self, run_id: UUID) -> None:
        """Store what tells of the end of a run that is to be cancelled, which the store ends by itself.

        Before it is: a process that dies in between leaves a message that finds nothing to tell, and not a silent end.
        """
        view = await self._means.stores.runs.get_run(run_id)
        webhook = None if view is None or view.state.final else json.loads(view.context).get("webhook")
        if webhook is not None:
            await self._means.stores.jobs.insert_jobs(
                [run_job(run_id, webhook, asked=self._means.clock.now().timestamp())]
            )
            self._means.stores.notifier.hint(f"queue:{QUEUE}")

    async def signal(self, key: str, payload: Any) -> bool:
        """Send a signal; False when its key had one before, which stands. Raises InvalidInputError."""
        text = encode_json(payload, field="payload", default=jsonable)
        return await with_retries(lambda _: self._means.stores.signals.send_signal(check_key("signal key", key), text))


def tasks_of(graph: Graph) -> set[str]:
    """Return the names of the tasks that a graph calls, also within its nodes."""
    names = {node.task for node in graph.nodes if isinstance(node, TaskNode)}
    return names.union(*(tasks_of(node.body) for node in graph.nodes if isinstance(node, Container)))
