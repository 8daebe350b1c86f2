"""Whether templates of a graph refer to what is known when they are filled."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.graph.bindings import MARKERS, OF_MANY, marker_of
from headrace.model.graph.nodes import Graph, LoopNode, MapNode, Node, SubNode, TaskNode, ValueNode, WaitNode
from headrace.model.graph.order import in_order

_SHAPES = (
    '{"$node": ID} perhaps with "path": […], {"$input": […]}, {"$run": […]}, {"$index": true}, {"$first": […]}, '
    '{"$text": […]} or {"$literal": …}'
)


def check_templates(graph: Graph, field: str) -> None:
    """Raise InvalidInputError for a template that refers to a node that does not come before. There is no cycle."""
    names = frozenset(node.id for node in graph.nodes)
    before = _Before(graph)
    for index, node in enumerate(graph.nodes):
        for at, name in _references_of(node, f"{field}.nodes[{index}]"):
            _check_known(name, names, at)
            if not before.has(name, node.id):
                rule = f"must refer to a node that comes before {node.id}: no way leads there from that one"
                raise InvalidInputError(at, rule, name)
    if graph.has_output:
        for at, name in _references(graph.output, f"{field}.output"):
            _check_known(name, names, at)


def _check_known(name: str, names: Collection[str], at: str) -> None:
    if name not in names:
        raise InvalidInputError(at, "must refer to a node of the same graph", name)


def templates_of(node: Node) -> list[tuple[str, Any]]:
    """Return the templates of a node, each with the path in its form."""
    match node:
        case TaskNode():
            args = [(f"args[{index}]", part) for index, part in enumerate(node.args or ())]
            return args + [(f"kwargs.{name}", part) for name, part in node.kwargs]
        case ValueNode():
            return [("value", node.value)] if node.given else []
        case WaitNode():
            return [("signal", node.signal)]
        case MapNode():
            return [("over", node.over)]
        case LoopNode() | SubNode():
            return [("input", node.start)] if node.given else []


class _Before:
    """Which nodes come before which: one number per node, with a bit for each that does."""

    def __init__(self, graph: Graph) -> None:
        self._place = {node.id: place for place, node in enumerate(graph.nodes)}
        self._bits = dict.fromkeys(self._place, 0)
        behind: dict[str, set[str]] = {name: set() for name in self._place}
        for edge in graph.edges:
            behind[edge.source].add(edge.target)
        for name in in_order(graph):
            bits = self._bits[name] | 1 << self._place[name]
            for target in behind[name]:
                self._bits[target] |= bits

    def has(self, name: str, later: str) -> bool:
        """Whether a way leads from a node to a later one."""
        return bool(self._bits[later] >> self._place[name] & 1)


def _references_of(node: Node, field: str) -> Iterator[tuple[str, str]]:
    """Yield what the templates of a node refer to, as `_references` does."""
    for at, template in templates_of(node):
        yield from _references(template, f"{field}.{at}")


def _references(template: Any, field: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of nodes that a template refers to, each with its path. Raises InvalidInputError."""
    todo = [(field, template)]
    for at, part in todo:  # which grows
        todo.extend(_within(part, at))
        if isinstance(part, dict) and marker_of(part) == "$node":
            yield f"{at}.$node", part["$node"]


def _within(part: Any, at: str) -> list[tuple[str, Any]]:
    """Return the templates that a part of a template is made of, each with its path. Raises InvalidInputError."""
    if isinstance(part, list | tuple):
        return [(f"{at}[{index}]", one) for index, one in enumerate(part)]
    if not isinstance(part, dict):
        return []
    name = marker_of(part)
    if name is None:
        _check_plain(part, at)
        return [(f"{at}.{key}", one) for key, one in part.items()]
    return [(f"{at}.{name}", part[name])] if name in OF_MANY else []


def _check_plain(part: dict[str, Any], at: str) -> None:
    wrong = sorted(part.keys() & MARKERS)
    if wrong:
        rule = f'must be {_SHAPES}; data that only looks so stands in {{"$literal": …}}'
        raise InvalidInputError(f"{at}.{wrong[0]}", rule, part)
