"""The order of nodes in a graph, and the graphs within a graph. Nothing here recurses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.model.graph.nodes import Container, Edge, Graph


@dataclass(frozen=True, slots=True)
class Within:
    """A graph, the path by which errors name it, and how many graphs deep it lies: 1 for the outermost."""

    graph: Graph
    field: str
    depth: int


def graphs_within(graph: Graph, field: str = "graph") -> Iterator[Within]:
    """Yield a graph and all graphs within it, outer ones first."""
    todo = deque([Within(graph, field, 1)])
    while todo:
        one = todo.popleft()
        yield one
        todo.extend(
            Within(node.body, f"{one.field}.nodes[{index}].body", one.depth + 1)
            for index, node in enumerate(one.graph.nodes)
            if isinstance(node, Container)
        )


def in_order(graph: Graph) -> list[str]:
    """Return the ids of nodes with each behind its predecessors; nodes on a cycle, or behind one, are left out."""
    waits = {node.id: 0 for node in graph.nodes}
    behind: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        waits[edge.target] += 1
        behind[edge.source].append(edge.target)
    ready = [name for name, count in waits.items() if not count]
    for name in ready:  # which grows
        for target in behind[name]:
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return ready


def find_cycle(graph: Graph) -> list[int]:
    """Return the places of edges that lead in a circle, in their order and from the first node on it; [] without one.

    >>> from headrace.model.graph.nodes import TaskNode
    >>> find_cycle(Graph((TaskNode("a", "t"), TaskNode("b", "t")), (Edge("b", "a"), Edge("a", "b"))))
    [1, 0]
    """
    left = {node.id for node in graph.nodes}.difference(in_order(graph))
    if not left:
        return []
    # Each node that is left has a predecessor that is left: walking back ends on a circle.
    into = {edge.target: index for index, edge in enumerate(graph.edges) if edge.source in left and edge.target in left}
    name, seen = next(node.id for node in graph.nodes if node.id in left), set[str]()
    while name not in seen:
        seen.add(name)
        name = graph.edges[into[name]].source
    circle = [into[name]]
    while graph.edges[circle[-1]].source != name:
        circle.append(into[graph.edges[circle[-1]].source])
    circle.reverse()
    return _from_first(graph, circle)


def _from_first(graph: Graph, circle: list[int]) -> list[int]:
    places = {node.id: place for place, node in enumerate(graph.nodes)}
    start = min(range(len(circle)), key=lambda index: places[graph.edges[circle[index]].source])
    return circle[start:] + circle[:start]


def longest_ahead(graph: Graph, weight: dict[str, float]) -> dict[str, float]:
    """Return the weight of the heaviest way from each node, itself included, to the end of its graph."""
    outgoing: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        outgoing[edge.source].append(edge)
    ahead: dict[str, float] = {}
    for name in reversed(in_order(graph)):
        ahead[name] = weight[name] + max((ahead[edge.target] for edge in outgoing[name]), default=0.0)
    return ahead
