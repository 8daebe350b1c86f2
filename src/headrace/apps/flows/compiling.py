"""From flows to graphs of the engine.

Each node of a flow becomes one node of the graph with the same place in it:

| shape | becomes |
|---|---|
| whole, trigger | a call of the task `flows.node` |
| each | a graph of its own: evaluate the parameters for each item, a map of `flows.call` over them, collect |
| loop | a loop of the engine: take the next batch, the nodes of the body, go back with what they gave |
| flow | a graph of its own: enter, a map of the other flow's graph (of one entry, or of one for each item), leave |

Every edge leads on whatever came out: a node that is given no items does not run, which its task decides, so that a
node behind several is started when all of them have ended, and not before. Only failures pass nodes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headrace.apps.flows.components import port_towards
from headrace.apps.flows.form import MAIN, Flow, Node, Policy
from headrace.apps.flows.naming import BACK, RESULT, TAKE, ids_of, workflow_name
from headrace.apps.flows.structure import DONE_PORT, LOOP_PORT, Block
from headrace.model.graph.check_nodes import MAX_ROUNDS
from headrace.model.graph.conditions import Test
from headrace.model.graph.nodes import Edge, Graph, LoopNode, MapNode, NodeOptions, RetryRule, SubNode, TaskNode
from headrace.model.graph.nodes import Node as GraphNode
from headrace.nodes.base import NodeType, Shape
from headrace.nodes.execute_workflow import waits

NODE_TASK, RESOLVE_TASK, CALL_TASK, COLLECT_TASK = "flows.node", "flows.resolve", "flows.call", "flows.collect"
TAKE_TASK, BACK_TASK = "flows.take", "flows.back"
ENTER_TASK, LEAVE_TASK, SEND_TASK, RESULT_TASK = "flows.enter", "flows.leave", "flows.send", "flows.result"
#: What a disabled node is, whatever it would be.
PASSING_TYPE = "headrace.noOp"
#: Errors of models and stores that another try helps against: it is made even where the flow asks for none.
PASSING = (
    "BlobStoreError", "OverloadedError", "ProviderTimeoutError", "ProviderUnavailableError", "RateLimitedError",
    "StoreUnavailableError",
)  # fmt: skip
_PATIENT = RetryRule("exponential_backoff", 4, timedelta(seconds=1), timedelta(seconds=30), on=PASSING)
_GIVEN: dict[str, Any] = {"$input": []}


@dataclass(frozen=True, slots=True)
class Plan:
    """A flow that was checked: what its nodes are, how they stand, and the flows it runs."""

    flow: Flow
    types: Mapping[str, NodeType]
    block: Block
    #: Names of nodes that expressions of each node refer to.
    refers: Mapping[str, frozenset[str]]
    #: Flows that nodes run, by the name of the node.
    inner: Mapping[str, Plan] = field(default_factory=dict)

    @property
    def traced(self) -> frozenset[str]:
        """Nodes whose items are told from which they came: those that some expression refers to, and loops."""
        loops = {name for name, kind in self.types.items() if kind.shape is Shape.LOOP}
        return frozenset().union(*self.refers.values(), loops)


def compile_plan(plan: Plan, *, mode: str | None = None) -> Graph:
    """Return the graph of a flow. Its input is {"items", "trigger", "mode", "vars"}, its output a list of items.

    `mode`: how it is started, of one that another flow runs; None: as the run's input says.
    """
    return _Compiler(plan, mode).whole()


class _Compiler:
    """Makes the graph of one flow."""

    def __init__(self, plan: Plan, mode: str | None) -> None:
        self._plan = plan
        self._mode: Any = {"$run": ["input", "mode"]} if mode is None else mode
        self._ids, self._entry = ids_of(plan.flow.nodes), entry_of(plan)
        self._inner_flow = mode is not None

    def whole(self) -> Graph:
        """Return the graph with its result."""
        block = self._plan.block
        nodes, edges = self._members(block)
        leaves = [self._items(block, name, self._last_port(name)) for name in block.leaves]
        nodes.append(TaskNode(RESULT, RESULT_TASK, (leaves,)))
        edges += [Edge(self._ids[name], RESULT) for name in block.leaves]
        return Graph(tuple(nodes), tuple(edges), {"$node": RESULT}, has_output=True)

    def _last_port(self, name: str) -> int:
        return self._outputs(name).index(DONE_PORT) if name in self._plan.block.loops else 0

    def _outputs(self, name: str) -> tuple[str, ...]:
        node = self._plan.flow.nodes[name]
        return self._plan.types[name].ports(node.parameters, node.version).outputs

    def _members(self, block: Block) -> tuple[list[GraphNode], list[Edge]]:
        nodes = [self._node(block, name) for name in block.names]
        pairs = {(link.source, link.target): None for link in block.links}
        pairs |= {(before, name): None for name, befores in block.after.items() for before in sorted(befores)}
        return nodes, [Edge(self._id(block, source), self._ids[target]) for source, target in pairs]

    def _id(self, block: Block, name: str) -> str:
        return TAKE if name == block.header else self._ids[name]

    def _items(self, block: Block, name: str, port: int) -> dict[str, Any]:
        return {"$node": self._id(block, name), "path": ["out", port]}

    def _node(self, block: Block, name: str) -> GraphNode:
        node, shape = self._plan.flow.nodes[name], self._plan.types[name].shape
        given = self._given(block, name)
        if name in block.loops:
            return self._loop(block, name, given)
        if shape is Shape.FLOW and not node.disabled:
            return self._inner(name, given)
        if shape is Shape.EACH and not node.disabled:
            return SubNode(self._ids[name], self._each(node), given, given=True)
        options = NodeOptions(retry=_retry(node))
        return TaskNode(self._ids[name], NODE_TASK, kwargs=tuple(given.items()), options=options)

    # What each is given

    def _given(self, block: Block, name: str) -> dict[str, Any]:
        """Return the template of what the tasks of a node are given: see `calls.Given`."""
        around: dict[str, Any] = {"vars": {"$run": ["input", "vars"]}, "mode": self._mode}
        if not self._inner_flow:
            # Members of the engine's report of a failure, which says no mode.
            around["failed"] = [{"$run": ["input", "workflow"]}, {"$run": ["input", "run_id"]}]
        if block.header is not None:
            around["round"] = {"$index": True}
        given = {
            "node": {"$literal": self._spec(block, name)},
            "inputs": self._inputs(block, name),
            "refs": {other: self._view(block, other) for other in sorted(self._refs(name))},
            "around": around,
        }
        if self._plan.types[name].shape is Shape.TRIGGER:
            given["start"] = _GIVEN
        return given

    def _refs(self, name: str) -> frozenset[str]:
        return self._plan.refers[name] - {name}

    def _view(self, block: Block, name: str) -> Any:
        if name in block.names or name == block.header:
            return {part: {"$node": self._id(block, name), "path": [part]} for part in ("out", "ran")}
        return {"$input": ["outer", name]}

    def _inputs(self, block: Block, name: str) -> list[list[Any]]:
        """Return templates of items by input port, in the order of the connections."""
        node = self._plan.flow.nodes[name]
        links = [link for link in block.links if link.target == name]
        count = self._plan.types[name].ports(node.parameters, node.version).inputs
        ports: list[list[Any]] = [[] for _ in range(max([count, *(link.input + 1 for link in links)]))]
        for link in links:
            ports[link.input].append(self._items(block, link.source, link.port))
        return ports

    def _spec(self, block: Block, name: str) -> dict[str, Any]:
        """Return what tasks know of a node: no place on a canvas, for what is moved there is not run again."""
        node, flow = self._plan.flow.nodes[name], self._plan.flow
        before = next((link.source for link in block.links if link.target == name), None)
        spec = {
            "name": name, "type": PASSING_TYPE if node.disabled else node.type,
            "version": node.version, "parameters": dict(node.parameters),
            "policy": node.policy.value, "tries": node.tries, "always": node.always_output, "once": node.execute_once,
            "disabled": node.disabled, "outputs": len(self._outputs(name)), "traced": name in self._plan.traced,
            "flow": flow.name, "timezone": flow.timezone, "before": before,
            "entry": triggers_of(self._plan) if name == self._entry else None, "inner": self._inner_flow,
            "sees": self._sees(name) or None,
        }  # fmt: skip
        return {key: value for key, value in spec.items() if value not in (None, False)}

    def _sees(self, name: str) -> dict[str, int]:
        """Return the ports of which a node's expressions see the items of other nodes: those that lead to it."""
        links = [link for link in self._plan.flow.connections if link.kind == MAIN]
        ports = {other: port_towards(other, name, links) for other in sorted(self._refs(name))}
        return {other: port for other, port in ports.items() if port}

    # Nodes that are graphs

    def _each(self, node: Node) -> Graph:
        call = TaskNode("call", CALL_TASK, (_GIVEN,), options=NodeOptions(retry=_retry(node)))
        nodes = (
            TaskNode("resolve", RESOLVE_TASK, (_GIVEN,)),
            MapNode("each", {"$node": "resolve", "path": ["calls"]}, Graph((call,))),
            TaskNode("collect", COLLECT_TASK, (_GIVEN, {"$node": "resolve", "path": ["unable"]}, {"$node": "each"})),
        )
        return Graph(nodes, (Edge("resolve", "each"), Edge("each", "collect")))

    def _loop(self, block: Block, name: str, given: dict[str, Any]) -> LoopNode:
        body = block.loops[name]
        nodes, edges = self._members(body)
        take = TaskNode(TAKE, TAKE_TASK, (_GIVEN,))
        returned = [self._items(body, link.source, link.port) for link in body.returns]
        back = TaskNode(BACK, BACK_TASK, (_GIVEN, {"$node": TAKE}, returned))
        sources = {self._id(body, link.source) for link in body.returns} | {TAKE}
        edges += [Edge(source, BACK) for source in sorted(sources)]
        graph = Graph((take, *nodes, back), tuple(edges), {"$node": BACK}, has_output=True)
        ports = self._outputs(name)
        given["ports"] = {"loop": ports.index(LOOP_PORT), "done": ports.index(DONE_PORT)}
        given["outer"] = {other: self._view(block, other) for other in sorted(body.outer)}
        return LoopNode(self._ids[name], graph, Test(("left",), "truthy"), MAX_ROUNDS, given, given=True)

    def _inner(self, name: str, given: dict[str, Any]) -> GraphNode:
        node, plan = self._plan.flow.nodes[name], self._plan.inner[name]
        given["enters"] = entry_of(plan)
        if not waits(node.parameters):
            given["sends"] = workflow_name(plan.flow.name)
            return TaskNode(self._ids[name], SEND_TASK, (given,), options=NodeOptions(retry=_retry(node)))
        graph = compile_plan(plan, mode="integrated")
        most_failed = 0 if node.policy is Policy.STOP else None
        nodes = (
            TaskNode("enter", ENTER_TASK, (_GIVEN,)),
            MapNode("run", {"$node": "enter", "path": ["starts"]}, graph, most_failed),
            TaskNode("leave", LEAVE_TASK, (_GIVEN, {"$node": "enter"}, {"$node": "run"})),
        )
        edges = (Edge("enter", "run"), Edge("run", "leave"))
        return SubNode(self._ids[name], Graph(nodes, edges), given, given=True)


def _retry(node: Node) -> RetryRule:
    if node.tries is None:
        return _PATIENT
    return RetryRule("fixed", node.tries, node.wait, node.wait, jitter=False)


def triggers_of(plan: Plan) -> list[str]:
    """Return the names of the nodes that may begin a run."""
    return [name for name in plan.block.names if plan.types[name].shape is Shape.TRIGGER]


def entry_of(plan: Plan) -> str | None:
    """Return the trigger that a flow begins with when another one runs it: the one made for that, else the first."""
    triggers = triggers_of(plan)
    made_for = [name for name in triggers if plan.types[name].name == "executeWorkflowTrigger"]
    return next(iter(made_for + triggers), None)
