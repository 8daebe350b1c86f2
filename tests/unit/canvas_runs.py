"""Runs graphs in the simplest way there is: one node after another, tasks as plain functions."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from headrace.model.graph.bindings import Scope, arguments, fill
from headrace.model.graph.flow import after, fails_graph
from headrace.model.graph.holding import holds
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import Graph, LoopNode, MapNode, Node, OnError, SubNode, TaskNode, ValueNode
from headrace.model.outcome import Done
from headrace.model.run import NodeEnding, NodeState

Tasks = Mapping[str, Callable[..., Any]]


class GraphFailed(Exception):
    """A node failed, and with it the graph."""


class Runner:
    """One run of a graph; `ended` has the state of each node that ended."""

    def __init__(
        self, graph: Graph, tasks: Tasks, given: Any = None, index: int | None = None, run: Any = None
    ) -> None:
        self.layout, self.tasks = Layout(graph), tasks
        self.run = {"id": "run-1", "input": given} if run is None else run
        self.outputs: dict[str, Any] = {}
        self.scope = Scope(given, index, self.run, self.outputs)
        self.ended: dict[str, NodeState] = {}
        self.arrived, self.fired = Counter[str](), Counter[str]()
        self.ready: deque[tuple[str, NodeState | None]] = deque((name, None) for name in self.layout.roots)

    def output(self) -> Any:
        """Run everything and return the output. Raises GraphFailed."""
        failed = False
        while self.ready:
            name, state = self.ready.popleft()
            ending = NodeEnding(name, state) if state is not None else self._end(self.layout.nodes[name])
            self.ended[name] = ending.state
            failed = failed or fails_graph(self.layout, ending)
            self._move(name, ending)
        assert self.ended.keys() == self.layout.nodes.keys()
        if failed:
            raise GraphFailed
        graph, leaves = self.layout.graph, self.layout.leaves
        if graph.has_output:
            return fill(graph.output, self.scope)
        return self.outputs.get(leaves[0]) if len(leaves) == 1 else {name: self.outputs.get(name) for name in leaves}

    def _move(self, name: str, ending: NodeEnding) -> None:
        moves = after(self.layout, "", name, ending, lambda: self.outputs.get(name))
        self.ready += [(path, None) for path in moves.starts if not path.endswith("/")]
        self.ended |= {skipped.path: NodeState.SKIPPED for skipped in moves.skipped}
        for step in moves.arrivals:
            if step.path.endswith("/"):
                continue
            decided = self._is_decided(step.path, step.total, step.need)
            self.arrived[step.path] += 1
            self.fired[step.path] += step.fired
            if not decided and self._is_decided(step.path, step.total, step.need):
                self.ready.append((step.path, None if self.fired[step.path] >= step.need else NodeState.SKIPPED))

    def _is_decided(self, path: str, total: int, need: int) -> bool:
        return self.fired[path] >= need or self.arrived[path] >= total

    def _end(self, node: Node) -> NodeEnding:
        try:
            value = self._run(node)
        except (ValueError, GraphFailed) as error:
            if node.options.on_error is OnError.OUTPUT:
                self.outputs[node.id] = {"kind": type(error).__name__, "message": str(error)}
            return NodeEnding(node.id, NodeState.FAILED)
        if isinstance(value, Done):
            self.outputs[node.id] = value.result
            return NodeEnding(node.id, NodeState.SUCCESS, port=value.port)
        self.outputs[node.id] = value
        return NodeEnding(node.id, NodeState.SUCCESS)

    def _run(self, node: Node) -> Any:
        match node:
            case TaskNode():
                args, kwargs = arguments(self.layout, node, self.scope)
                return self.tasks[node.task](*args, **kwargs)
            case ValueNode():
                return fill(node.value, self.scope)
            case MapNode():
                return self._map(node)
            case SubNode():
                return self._within(node.body, fill(node.start, self.scope))
            case LoopNode():
                value = fill(node.start, self.scope)
                for index in range(node.most):
                    value = self._within(node.body, value, index)
                    if not holds(node.again, value):
                        break
                return value
            case _:
                return None

    def _map(self, node: MapNode) -> list[Any]:
        results, failed = [], 0
        for index, entry in enumerate(fill(node.over, self.scope)):
            try:
                results.append(self._within(node.body, entry, index))
            except GraphFailed:
                results.append(None)
                failed += 1
        if node.max_failed is not None and failed > node.max_failed:
            raise GraphFailed
        return results

    def _within(self, body: Graph, given: Any, index: int | None = None) -> Any:
        return Runner(body, self.tasks, given, index, self.run).output()


def fail(*_: Any, **__: Any) -> Any:
    """Be a task that fails."""
    raise ValueError("broken")


def shown(*args: Any, **kwargs: Any) -> Any:
    """Be a task whose result shows what it was given."""
    return [*args, kwargs] if kwargs else list(args)
