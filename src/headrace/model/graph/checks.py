"""Whether a graph can run. Every error names the path of the fault, as in the JSON form (`form`)."""

from __future__ import annotations

import re
from collections import Counter

from headrace.model.errors import InvalidInputError
from headrace.model.graph.check_nodes import check_node
from headrace.model.graph.check_templates import check_templates
from headrace.model.graph.form_conditions import check_condition
from headrace.model.graph.nodes import ERROR_PORT, Edge, Graph, Node, OnError
from headrace.model.graph.order import Within, find_cycle, graphs_within
from headrace.model.names import check_name

#: Nodes of a graph, those of graphs within it included, and graphs in one another.
MAX_NODES, MAX_NESTING = 500, 8

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_RULE = "must be 1 to 64 of the characters A-Z a-z 0-9 _ -"
_MAX_TAG = 64


def check_graph(graph: Graph, *, field: str = "graph") -> Graph:
    """Return `graph` if it can run, else raise InvalidInputError with the path of the first fault, its rule and value.

    Looked at are cycles, edges that lead nowhere, ids, what templates refer to, joins, ports, bounds of loops, options,
    and sizes: 500 nodes, 8 graphs in one another. Whether its tasks are registered is not.
    """
    nodes = 0
    for one in graphs_within(graph, field):
        if one.depth > MAX_NESTING:
            raise InvalidInputError(one.field, f"must not be nested deeper than {MAX_NESTING} graphs", one.depth)
        nodes += len(one.graph.nodes)
        if nodes > MAX_NODES:
            rule = (
                f"must have at most {MAX_NODES} nodes, those of graphs within included; a map runs one for many entries"
            )
            raise InvalidInputError(f"{field}.nodes", rule, nodes)
    for one in graphs_within(graph, field):
        _check_one(one)
    return graph


def _check_one(one: Within) -> None:
    graph, field = one.graph, one.field
    if not graph.nodes:
        raise InvalidInputError(f"{field}.nodes", "must have a node at least", [])
    nodes = _check_ids(graph, field)
    _check_edges(graph, field, nodes)
    _check_cycle(graph, field)
    incoming = Counter(edge.target for edge in graph.edges)
    for index, node in enumerate(graph.nodes):
        check_node(node, f"{field}.nodes[{index}]", incoming[node.id])
    check_templates(graph, field)
    for index, tag in enumerate(graph.tags):
        if not isinstance(tag, str) or not 1 <= len(tag) <= _MAX_TAG or not tag.isprintable():
            raise InvalidInputError(f"{field}.tags[{index}]", f"must be 1 to {_MAX_TAG} printable characters", tag)
    if graph.on_failure is not None:
        check_name(f"{field}.on_failure", graph.on_failure)


def _check_ids(graph: Graph, field: str) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for index, node in enumerate(graph.nodes):
        if not isinstance(node.id, str) or not _ID.fullmatch(node.id):
            raise InvalidInputError(f"{field}.nodes[{index}].id", _ID_RULE, node.id)
        if node.id in nodes:
            raise InvalidInputError(f"{field}.nodes[{index}].id", "must be the only one of its graph", node.id)
        nodes[node.id] = node
    return nodes


def _check_edges(graph: Graph, field: str, nodes: dict[str, Node]) -> None:
    # Hashes would need values of conditions that have one.
    seen: dict[tuple[str, str, str], list[Edge]] = {}
    for index, edge in enumerate(graph.edges):
        at = f"{field}.edges[{index}]"
        for end, name in (("from", edge.source), ("to", edge.target)):
            if name not in nodes:
                raise InvalidInputError(f"{at}.{end}", "must be the id of a node of the same graph", name)
        _check_port(edge, at, nodes[edge.source])
        if edge.when is not None:
            check_condition(edge.when, f"{at}.when")
        alike = seen.setdefault((edge.source, edge.target, edge.port), [])
        if edge in alike:
            raise InvalidInputError(at, "must not be there twice", f"{edge.source} → {edge.target}")
        alike.append(edge)


def _check_port(edge: Edge, at: str, source: Node) -> None:
    if not isinstance(edge.port, str) or not _ID.fullmatch(edge.port):
        raise InvalidInputError(f"{at}.port", _ID_RULE, edge.port)
    if edge.port == ERROR_PORT and source.options.on_error is not OnError.OUTPUT:
        rule = f'must not be "error": node {edge.source} does not have on_error = "output"'
        raise InvalidInputError(f"{at}.port", rule, edge.port)


def _check_cycle(graph: Graph, field: str) -> None:
    circle = find_cycle(graph)
    if circle:
        names = [graph.edges[index].source for index in circle]
        shown = " → ".join([*names, names[0]])
        raise InvalidInputError(f"{field}.edges[{circle[-1]}]", "must not lead back to where it comes from", shown)
