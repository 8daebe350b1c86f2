"""A run as a tree, for people: its nodes in the order of the graph, with what has become of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from headrace.engine.workflows.means import Means
from headrace.engine.workflows.tries import Tries
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import Container, LoopNode, MapNode, OnError, TaskNode, kind_of
from headrace.model.graph.paths import end_of, input_of, join_path
from headrace.model.job import JobError, JobState
from headrace.model.run import LiveNode, NodeEnding, NodeState, RunView

#: Of so many nodes that wait for their next tries the errors of the last ones are read.
MOST_ERRORS = 50


@dataclass(slots=True)
class TreeNode:
    """A node, or one entry of a map or round of a loop (`kind` "entry"), with what is within it."""

    path: str
    kind: str
    state: NodeState
    #: The task it calls.
    task: str | None = None
    attempts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    #: Why it failed, or, of one that waits for its next try, why the last one did.
    error: JobError | None = None
    reused: bool = False
    #: JSON text, or a reference.
    output: str | None = None
    #: The signal it waits for.
    waits_for: str | None = None
    #: When it is tried again.
    again_at: datetime | None = None
    #: Its job, while that is not final.
    job_id: UUID | None = None
    children: list[TreeNode] = field(default_factory=list)


@dataclass(slots=True)
class RunTree:
    """A run with its nodes."""

    run: RunView
    nodes: list[TreeNode]


@dataclass(frozen=True, slots=True)
class _PutOff:
    """A node that waits for its next try: how many failed, until when, and why the last one did."""

    failures: int
    until: datetime
    error: JobError | None = None


async def read_tree(means: Means, view: RunView) -> RunTree:
    """Return a run with its nodes as they are now."""
    # In this order: a node that ends in between is seen as running, never as pending.
    jobs = await means.stores.runs.live_nodes(view.id)
    live = {one.node: one for one in jobs if one.node is not None}
    whole = any(one.node is None and one.state is JobState.RUNNING for one in jobs)
    put_off = await _put_off(means, jobs)
    ended = {ending.path: ending for ending in await means.stores.runs.read_nodes(view.id)}
    layout = await means.known.layout(view.snapshot)
    reader = _Reader(layout, ended, live, put_off, over=view.state.final, whole=whole)
    return RunTree(view, reader.graph(reader.layout, ""))


async def _put_off(means: Means, jobs: Sequence[LiveNode]) -> dict[str, _PutOff]:
    """Return the nodes of live jobs that wait for their next try, by path."""
    found: dict[str, _PutOff] = {}
    read = 0
    for job in jobs:
        if job.node is None:
            found |= await _put_off_within(means, job)
        elif job.state is JobState.SCHEDULED and job.run_at is not None:
            asked = job.failures > 0 and read < MOST_ERRORS
            read += asked
            found[job.node] = _PutOff(job.failures, job.run_at, await _last_error(means, job) if asked else None)
    return found


async def _put_off_within(means: Means, job: LiveNode) -> dict[str, _PutOff]:
    """Return the nodes that wait for their next try of those that one job runs."""
    tries = Tries.of(await means.stores.jobs.load_steps(job.job_id))
    now = means.clock.now()
    return {
        path: _PutOff(tries.failures[path], at, tries.errors.get(path)) for path, at in tries.until.items() if at > now
    }


async def _last_error(means: Means, job: LiveNode) -> JobError | None:
    attempts = await means.stores.inspect.get_attempts(job.job_id)
    return next((one.error for one in reversed(attempts) if one.error is not None), None)


@dataclass(slots=True)
class _Reader:
    layout: Layout
    ended: Mapping[str, NodeEnding]
    live: Mapping[str, LiveNode]
    put_off: Mapping[str, _PutOff]
    over: bool
    #: One job runs all of it now: whatever can have started has.
    whole: bool

    def graph(self, layout: Layout, scope: str) -> list[TreeNode]:
        return [self.node(layout, scope, name) for name in layout.nodes]

    def node(self, layout: Layout, scope: str, name: str) -> TreeNode:
        node, path = layout.nodes[name], join_path(scope, name)
        found = self._facts(path, kind_of(node))
        if isinstance(node, TaskNode):
            found.task = node.task
        before = (edge.source for edge in layout.incoming[name])
        if (
            self.whole
            and found.state is NodeState.PENDING
            and found.again_at is None
            and all(join_path(scope, one) in self.ended for one in before)
        ):
            found.state = NodeState.RUNNING
        if isinstance(node, Container):
            inner = layout.inner[name]
            if isinstance(node, MapNode | LoopNode):
                found.children = self._entries(inner, path)
            elif self._begun(path):
                found.children = self.graph(inner, path)
            self._begin_with(found)
        return found

    def _begun(self, scope: str) -> bool:
        return input_of(scope) in self.ended

    def _entries(self, inner: Layout, path: str) -> list[TreeNode]:
        count = 0
        prefix = f"{path}["
        for known in (*self.ended, *self.live):
            if known.startswith(prefix):
                count = max(count, int(known[len(prefix) :].partition("]")[0]) + 1)
        return [self._entry(inner, f"{path}[{index}]") for index in range(count)]

    def _entry(self, inner: Layout, scope: str) -> TreeNode:
        children = self.graph(inner, scope)
        if len(children) == 1 and not children[0].children:
            return children[0]
        found = self._facts(scope, "entry")
        found.children = children
        unknown = scope not in self.ended and found.state in (NodeState.PENDING, NodeState.CANCELLED)
        if unknown and all(child.state.final for child in children):
            found.state = _state_of(inner, children)
        self._begin_with(found)
        return found

    def _begin_with(self, found: TreeNode) -> None:
        """Show what has nodes within as running from their first start to its own end."""
        begun = [child.started_at for child in found.children if child.started_at is not None]
        if begun:
            found.started_at = min(begun)
        if found.state is NodeState.PENDING and (begun or self._begun(found.path)) and not self.over:
            found.state = NodeState.RUNNING

    def _facts(self, path: str, kind: str) -> TreeNode:
        ending, live = self.ended.get(path), self.live.get(path) or self.live.get(end_of(path))
        if ending is not None:
            return TreeNode(
                path, kind, ending.state, None, ending.attempts, ending.started_at, ending.finished_at, ending.error,
                ending.reused, ending.output,
            )  # fmt: skip
        if live is None:
            return self._not_begun(path, kind)
        states = {JobState.RUNNING: NodeState.RUNNING, JobState.PARKED: NodeState.PARKED}
        state = states.get(live.state, NodeState.PENDING)
        found = TreeNode(path, kind, state, None, live.failures, live.started_at, waits_for=live.parked_on)
        found.job_id = live.job_id
        return self._with_next_try(found)

    def _not_begun(self, path: str, kind: str) -> TreeNode:
        """Return a node without an end and without a job of its own."""
        return self._with_next_try(TreeNode(path, kind, NodeState.CANCELLED if self.over else NodeState.PENDING))

    def _with_next_try(self, found: TreeNode) -> TreeNode:
        put_off = self.put_off.get(found.path)
        if put_off is not None:
            found.attempts, found.again_at, found.error = put_off.failures, put_off.until, put_off.error
        return found


def _state_of(layout: Layout, children: Sequence[TreeNode]) -> NodeState:
    """Return what an entry or round without an end of its own has come to: by its nodes, in the order of the graph."""
    for node, child in zip(layout.nodes.values(), children, strict=True):
        fails = child.state is NodeState.FAILED and node.options.on_error is OnError.STOP
        if fails or child.state is NodeState.CANCELLED:
            return child.state
    return NodeState.SUCCESS
