"""Priorities of the nodes of one graph: which of them is worth running first."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.model.errors import InvalidInputError
from headrace.model.graph.nodes import Graph, kind_of
from headrace.model.graph.order import longest_ahead
from headrace.model.priority import Priority

BY_KIND, BY_DEPTH = "by_node_type", "by_dependency_depth"
STRATEGIES = (BY_KIND, BY_DEPTH)
#: What costs next to nothing and lets others start comes first.
KIND_PRIORITIES: Mapping[str, int] = {"value": 3, "wait": 3, "workflow": 4, "loop": 4, "map": 5, "task": 5}
#: The priority of the longest way ahead, and of the shortest.
_FIRST, _LAST = 3, 7


def priorities(graph: Graph, strategy: str, by_kind: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the priority, 0 (earliest) to 9, of each node of a checked graph, by id. Graphs within are ranked alone.

    `by_node_type` goes by the kind of node: `by_kind`, or else `KIND_PRIORITIES`. `by_dependency_depth` puts first what
    most time lies behind, its own included, by declared estimates, one second where there is none. What a node itself
    says counts before both. Raises InvalidInputError for another strategy.

    >>> from headrace.model.graph.nodes import Edge, TaskNode
    >>> graph = Graph((TaskNode("a", "t"), TaskNode("b", "t"), TaskNode("alone", "t")), (Edge("a", "b"),))
    >>> priorities(graph, "by_dependency_depth")
    {'a': 3, 'b': 7, 'alone': 7}
    """
    if strategy == BY_KIND:
        usual = {**KIND_PRIORITIES, **(by_kind or {})}
        ranks = {node.id: usual[kind_of(node)] for node in graph.nodes}
    elif strategy == BY_DEPTH:
        ranks = _by_depth(graph)
    else:
        raise InvalidInputError("priority_strategy", f"must be one of {', '.join(STRATEGIES)}", strategy)
    own = {node.id: node.options.priority for node in graph.nodes}
    return {name: rank if (given := own[name]) is None else given for name, rank in ranks.items()}


def _by_depth(graph: Graph) -> dict[str, int]:
    weight = {
        node.id: 1.0 if node.options.estimate is None else node.options.estimate.total_seconds() for node in graph.nodes
    }
    ahead = longest_ahead(graph, weight)
    longest, shortest = max(ahead.values()), min(ahead.values())
    if longest == shortest:
        return dict.fromkeys(weight, int(Priority.STANDARD))
    scale = (_LAST - _FIRST) / (longest - shortest)
    return {name: _FIRST + round((longest - ahead[name]) * scale) for name in weight}
