"""What has become of each node of a flow in a run, read from the tree of the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace import App, InvalidInputError, Run
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.given import plain_items
from headrace.apps.flows.naming import ids_of
from headrace.model.run import NodeState, RunState, RunView
from headrace.nodes.base import Items
from headrace.nodes.registry import find_type

if TYPE_CHECKING:
    from headrace.engine.workflows.tree import TreeNode

RAN, EMPTY = "ran", "no items"
_WORDS = {
    NodeState.PENDING: "pending", NodeState.RUNNING: "running", NodeState.PARKED: "waiting",
    NodeState.FAILED: "failed", NodeState.CANCELLED: "cancelled", NodeState.SKIPPED: "skipped",
}  # fmt: skip
#: Of the states of a node that runs several times, in a loop, the first of these that any has is its state.
_ORDER = ("failed", "running", "waiting", RAN, EMPTY, "pending", "skipped", "cancelled")


@dataclass(slots=True)
class NodeResult:
    """What has become of a node; of one in a loop over all its rounds."""

    name: str
    id: str
    type: str
    state: str
    #: Items by output port.
    items: list[int] = field(default_factory=list)
    #: How many of these are items that failed.
    failed: int = 0
    error: str | None = None
    #: How long it took, where that is known.
    seconds: float | None = None
    #: The items themselves, where they were asked for.
    out: list[Items] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        told = {
            "name": self.name, "id": self.id, "type": self.type, "state": self.state, "ran": self.state == RAN,
            "items": self.items, "failed_items": self.failed, "error": self.error, "seconds": self.seconds,
        }  # fmt: skip
        return told if self.out is None else told | {"out": self.out}

    @property
    def remark(self) -> str:
        """How many items it gave, for people."""
        if self.state != RAN:
            return ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{'/'.join(map(str, self.items))} {'item' if self.items == [1] else 'items'}{failed}"


async def flow_of_run(app: App, view: RunView) -> Flow:
    """Return the flow that a run is of, as it was when the run was started. Raises InvalidInputError."""
    text = await app.runtime.stores.runs.load_graph(view.snapshot)
    source = None if text is None else json.loads(text).get("source")
    if not isinstance(source, dict) or "nodes" not in source:
        raise InvalidInputError("run", "must be one of a flow", f"{view.id}, a run of {view.workflow}")
    return parse_flow(source)


async def read_results(app: App, run: Run, flow: Flow, wanted: Sequence[str] = ()) -> list[NodeResult]:
    """Return what has become of the nodes of a flow, in the order in which they run.

    `wanted`: names of nodes whose items are read too.
    """
    tree = await run.tree()
    names = {one: name for name, one in ids_of(flow.nodes).items()}
    found: dict[str, list[TreeNode]] = {}
    for one in _walk(tree.nodes, names):
        found.setdefault(names[one.path.rpartition("/")[2]], []).append(one)
    reader = _Reader(app, failed=tree.run.state is RunState.FAILED)
    results = []
    for name, nodes in found.items():
        result = NodeResult(name, ids_of(flow.nodes)[name], flow.nodes[name].type, "")
        result.out = [] if name in wanted else None
        for one in nodes:
            await reader.add(result, one)
        results.append(result)
    return [one for one in results if not _is_note(flow, one.name)]


def _is_note(flow: Flow, name: str) -> bool:
    kind = find_type(flow.nodes[name].type, flow.nodes[name].parameters)
    return kind is not None and kind.shape == "note"


def _walk(nodes: Sequence[TreeNode], names: Mapping[str, str]) -> Iterator[TreeNode]:
    """Yield the nodes of a run that are nodes of the flow: those of its graph, and of the rounds of its loops."""
    for one in nodes:
        if one.path.rpartition("/")[2] not in names:
            continue
        yield one
        if one.kind == "loop":
            for entry in one.children:
                yield from _walk(entry.children, names)


@dataclass(slots=True)
class _Reader:
    app: App
    #: Whether the run failed: what did not begin then was passed over.
    failed: bool

    async def add(self, result: NodeResult, node: TreeNode) -> None:
        """Add to a result what a node of the run came to."""
        value = None if node.output is None else await self.app.runtime.means.values.load(node.output)
        state = self._state(node, value)
        result.state = min(filter(None, [result.state, state]), key=_ORDER.index)
        if node.error is not None and node.state is NodeState.FAILED:
            result.error = f"{node.error.kind}: {node.error.message}"
        if node.started_at is not None and node.finished_at is not None:
            took = (node.finished_at - node.started_at).total_seconds()
            result.seconds = round((result.seconds or 0) + took, 3)
        for port, items in enumerate(value.get("out", ()) if isinstance(value, dict) else ()):
            _add_items(result, port, plain_items(items))

    def _state(self, node: TreeNode, value: Any) -> str:
        if node.state is NodeState.SUCCESS:
            return RAN if isinstance(value, dict) and value.get("ran") else EMPTY
        word = _WORDS[node.state]
        return "skipped" if word == "cancelled" and self.failed else word


def _add_items(result: NodeResult, port: int, items: Items) -> None:
    result.items += [0] * (port + 1 - len(result.items))
    result.items[port] += len(items)
    result.failed += sum("error" in item for item in items)
    if result.out is not None:
        result.out += [[] for _ in range(port + 1 - len(result.out))]
        result.out[port] += items
