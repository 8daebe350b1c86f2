"""What never changes in a run: its graph, its input, how its tasks' jobs are stored. Read once per process."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from headrace.model.errors import NotFoundError
from headrace.model.graph.form import parse_graph
from headrace.model.graph.layout import Layout, Place
from headrace.model.graph.nodes import TaskNode
from headrace.model.graph.ranks import priorities
from headrace.model.ids import uuid7s
from headrace.model.job import JobSpec, NewJob, RunInfo
from headrace.model.limits import Gate
from headrace.model.priority import Priority
from headrace.model.run import NODE_SPEC, UNBOUND
from headrace.ports.run_store import RunStore

MOST_RUNS, MOST_GRAPHS = 512, 64


@dataclass(frozen=True, slots=True)
class Start:
    """A path that starts now; `args` is the JSON text of its job's arguments where they are known already."""

    path: str
    args: str = UNBOUND


class RunRecord(Protocol):
    """What does not change of a run, new or stored."""

    @property
    def id(self) -> UUID: ...
    @property
    def workflow(self) -> str: ...
    @property
    def input(self) -> str: ...
    @property
    def context(self) -> str: ...
    @property
    def key(self) -> str | None: ...
    @property
    def rerun_of(self) -> UUID | None: ...
    @property
    def rerun_from(self) -> str | None: ...


class RunFacts:
    """One run. `context` is what its starter gave along: user_id, correlation_id, metadata."""

    def __init__(self, view: RunRecord, layout: Layout, strategy: str) -> None:
        self.id, self.view, self.layout = view.id, view, layout
        self.context: dict[str, Any] = json.loads(view.context)
        self.strategy = strategy
        #: Where the run's end is told.
        self.webhook: str | None = self.context.pop("webhook", None)
        self.specs = {name: parse_spec(name, facts) for name, facts in self.context.pop("tasks", {}).items()}
        self._ranks: dict[int, dict[str, int]] = {}
        self._made: dict[tuple[int, str], JobSpec] = {}

    def scope_facts(self, given: Any) -> dict[str, Any]:
        """Return what templates find under `$run`; `given` is the run's input."""
        return {**self.context, "id": str(self.id), "workflow": self.view.workflow, "input": given}

    def info(self, path: str) -> RunInfo:
        """Return what the handler of a node is told of the run."""
        given = self.context
        return RunInfo(self.id, self.view.workflow, path, given["user_id"], given["correlation_id"], given["metadata"])

    def forces(self, path: str) -> bool:
        """Whether a repeated run has to run the node again, whatever it was given."""
        first = self.view.rerun_from
        return first is not None and (path == first or path.startswith((f"{first}/", f"{first}[")))

    def jobs(self, starts: Sequence[Start]) -> list[NewJob]:
        """Return the jobs of paths, to be claimed in their order."""
        ids = uuid7s(len(starts))
        return [
            NewJob(self._spec(start.path), start.args, job_id, run_id=self.id, node=start.path)
            for start, job_id in zip(starts, ids, strict=True)
        ]

    def _spec(self, path: str) -> JobSpec:
        if path.endswith("/"):
            return NODE_SPEC
        place = self.layout.place(path)
        key = (id(place.layout), place.node.id)
        if key not in self._made:
            self._made[key] = self._node_spec(place)
        return self._made[key]

    def _node_spec(self, place: Place) -> JobSpec:
        node, options = place.node, place.node.options
        if not isinstance(node, TaskNode):
            return replace(NODE_SPEC, priority=self._rank(place))
        spec = self.specs[node.task]
        return replace(
            spec,
            priority=self._task_priority(spec, place),
            max_attempts=spec.max_attempts if options.retry is None else options.retry.max_tries,
            timeout=options.timeout or spec.timeout,
        )

    def _task_priority(self, spec: JobSpec, place: Place) -> int:
        """Return the node's own priority, else one that its task declares, else its rank in the graph."""
        declared = place.node.options.priority is None and spec.priority != Priority.STANDARD
        return spec.priority if declared else self._rank(place)

    def _rank(self, place: Place) -> int:
        ranks = self._ranks.get(id(place.layout))
        if ranks is None:
            ranks = self._ranks[id(place.layout)] = priorities(place.layout.graph, self.strategy)
        return ranks[place.node.id]

    def place(self, path: str) -> Place:
        """Return the node at a path."""
        return self.layout.place(path)


class KnownRuns:
    """Runs and graphs that this process has seen lately."""

    def __init__(self, runs: RunStore, strategy: str) -> None:
        self._runs, self.strategy = runs, strategy
        self._facts: OrderedDict[UUID, RunFacts] = OrderedDict()
        self._layouts: OrderedDict[str, Layout] = OrderedDict()

    async def get(self, run_id: UUID) -> RunFacts:
        """Return a run. Raises NotFoundError."""
        known = self._facts.get(run_id)
        if known is None:
            view = await self._runs.get_run(run_id)
            if view is None:
                raise NotFoundError(f"no run {run_id}; it may have been pruned, see [recovery]")
            known = self._facts[run_id] = RunFacts(view, await self.layout(view.snapshot), self.strategy)
            _bound(self._facts, MOST_RUNS)
        self._facts.move_to_end(run_id)
        return known

    async def layout(self, snapshot: str) -> Layout:
        """Return the graph with a hash. Raises NotFoundError."""
        known = self._layouts.get(snapshot)
        if known is None:
            text = await self._runs.load_graph(snapshot)
            if text is None:
                raise NotFoundError(f"no graph {snapshot} is stored; its run may have been pruned, see [recovery]")
            known = self._layouts[snapshot] = Layout(parse_graph(json.loads(text)))
            _bound(self._layouts, MOST_GRAPHS)
        self._layouts.move_to_end(snapshot)
        return known


def _bound(kept: OrderedDict[Any, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def spec_facts(spec: JobSpec) -> dict[str, Any]:
    """Return how a task's jobs are stored as JSON data; `parse_spec` is the inverse."""
    facts = {
        "queue": spec.queue,
        "priority": int(spec.priority),
        "max_attempts": spec.max_attempts,
        "timeout": None if spec.timeout is None else spec.timeout / timedelta(microseconds=1),
        "once": spec.at_most_once,
        "gate": None if spec.gate is None else spec.gate.text,
        "cost": spec.cost,
    }
    return {name: value for name, value in facts.items() if value is not None}


def parse_spec(task: str, facts: Mapping[str, Any]) -> JobSpec:
    """Return the inverse of `spec_facts`."""
    timeout, gate = facts.get("timeout"), facts.get("gate")
    return JobSpec(
        task,
        facts["queue"],
        facts["priority"],
        facts["max_attempts"],
        None if timeout is None else timedelta(microseconds=timeout),
        facts["once"],
        None if gate is None else Gate.parse(gate),
        facts["cost"],
    )
