"""A run as a tree, for people: its nodes in the order of the graph, with what has become of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from headrace.engine.workflows.facts import KnownRuns
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import Container, LoopNode, MapNode, TaskNode, kind_of
from headrace.model.graph.paths import end_of, input_of, join_path
from headrace.model.job import JobError, JobState
from headrace.model.run import LiveNode, NodeEnding, NodeState, RunView
from headrace.ports.run_store import RunStore


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
    error: JobError | None = None
    reused: bool = False
    #: JSON text, or a reference.
    output: str | None = None
    #: The signal it waits for.
    waits_for: str | None = None
    children: list[TreeNode] = field(default_factory=list)


@dataclass(slots=True)
class RunTree:
    """A run with its nodes."""

    run: RunView
    nodes: list[TreeNode]


async def read_tree(runs: RunStore, known: KnownRuns, view: RunView) -> RunTree:
    """Return a run with its nodes as they are now."""
    # In this order: a node that ends in between is seen as running, never as pending.
    jobs = await runs.live_nodes(view.id)
    live = {one.node: one for one in jobs if one.node is not None}
    whole = any(one.node is None and one.state is JobState.RUNNING for one in jobs)
    ended = {ending.path: ending for ending in await runs.read_nodes(view.id)}
    reader = _Reader(await known.layout(view.snapshot), ended, live, over=view.state.final, whole=whole)
    return RunTree(view, reader.graph(reader.layout, ""))


@dataclass(slots=True)
class _Reader:
    layout: Layout
    ended: Mapping[str, NodeEnding]
    live: Mapping[str, LiveNode]
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
        if found.state is NodeState.PENDING and all(child.state.final for child in children):
            found.state = NodeState.SUCCESS
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
            return TreeNode(path, kind, NodeState.CANCELLED if self.over else NodeState.PENDING)
        states = {JobState.RUNNING: NodeState.RUNNING, JobState.PARKED: NodeState.PARKED}
        state = states.get(live.state, NodeState.PENDING)
        return TreeNode(path, kind, state, None, live.failures, live.started_at, waits_for=live.parked_on)
