"""The JSON form of graphs, in which workflows are stored and may be written. What is left out is as usual.

    {"nodes": [{"id": "fetch", "task": "fetch", "retry": {"max_tries": 3, "base": "5s"}},
               {"id": "each", "kind": "map", "over": {"$node": "fetch", "path": ["pages"]},
                "body": {"nodes": [{"id": "parse", "task": "parse"}]}, "max_failed": 2},
               {"id": "tell", "task": "tell", "args": [{"$node": "each"}]}],
     "edges": [{"from": "fetch", "to": "each", "when": {"path": "pages", "op": "truthy"}},
               {"from": "each", "to": "tell"}]}

A graph has `nodes`, `edges`, `output`, `tags`, `on_failure` and `source` (what it was made from: kept, and not looked
at). A node has an `id`, a `kind` and what that kind has:

| kind | members |
|---|---|
| task, the usual one | `task`, `args`, `kwargs` |
| value | `value` |
| wait | `signal`, `timeout` |
| map | `over`, `body`, `max_failed` (null: any number) |
| loop | `body`, `while`, `max_rounds`, `input` |
| workflow | `body`, `input` |

and `on_error`, `join` ("all", "any" or a number), `retry` (`strategy`, `max_tries`, `base`, `cap`, `jitter`, `on`),
`timeout`, `priority`, `version`, `estimate`, `on_open`. An edge has `from`, `to`, `port` and `when`. Durations are
seconds or texts such as "90s".
"""

from __future__ import annotations

import json
from typing import Any

from headrace.model.graph.form_conditions import condition_form, parse_condition
from headrace.model.graph.form_nodes import node_form, parse_node
from headrace.model.graph.members import Members, list_of, text
from headrace.model.graph.nodes import MAIN_PORT, Edge, Graph, Node
from headrace.model.payload import encode_json, hash_text

#: Graphs whose JSON has more bytes of UTF-8 are refused: they are read and kept by every worker.
MAX_GRAPH_BYTES = 1024 * 1024


def parse_graph(data: Any, *, field: str = "graph") -> Graph:
    """Return a graph of its JSON form. What it means is looked at by `checks.check_graph`.

    Raises InvalidInputError with the path of what is not known, missing or of a wrong type, such as
    `graph.nodes[3].retry.max_tries`; PayloadTooLargeError above 1 MiB.
    """
    return _graph(json.loads(encode_json(data, field=field, most=MAX_GRAPH_BYTES)), field)


def _graph(data: Any, field: str) -> Graph:
    form = Members(data, field)
    graph = Graph(
        form.need("nodes", list_of(_node)),
        form.get("edges", list_of(_edge), ()),
        form.raw("output"),
        form.has("output"),
        form.get("tags", list_of(text), ()),
        form.get("on_failure", text, None),
        form.raw("source"),
    )
    form.close()
    return graph


def _node(data: Any, field: str) -> Node:
    return parse_node(data, field, _graph)


def _edge(data: Any, field: str) -> Edge:
    form = Members(data, field)
    edge = Edge(
        form.need("from", text),
        form.need("to", text),
        form.get("port", text, MAIN_PORT),
        form.get("when", parse_condition, None),
    )
    form.close()
    return edge


def graph_form(graph: Graph) -> dict[str, Any]:
    """Return the JSON form of a graph; `parse_graph` is the inverse. Templates are not copied."""
    form: dict[str, Any] = {"nodes": [node_form(node, graph_form) for node in graph.nodes]}
    if graph.edges:
        form["edges"] = [_edge_form(edge) for edge in graph.edges]
    if graph.has_output:
        form["output"] = graph.output
    if graph.tags:
        form["tags"] = list(graph.tags)
    if graph.on_failure is not None:
        form["on_failure"] = graph.on_failure
    if graph.source is not None:
        form["source"] = graph.source
    return form


def _edge_form(edge: Edge) -> dict[str, Any]:
    form: dict[str, Any] = {"from": edge.source, "to": edge.target}
    if edge.port != MAIN_PORT:
        form["port"] = edge.port
    if edge.when is not None:
        form["when"] = condition_form(edge.when)
    return form


def encode_graph(graph: Graph, *, field: str = "graph") -> tuple[str, str]:
    """Return the JSON text of a graph and its hash.

    Members of objects within templates stay in the order in which they were written: it means something to people, and
    to models that are given a schema. Raises InvalidInputError for a template that is not JSON, PayloadTooLargeError
    above 1 MiB.
    """
    encoded = encode_json(graph_form(graph), field=field, most=MAX_GRAPH_BYTES)
    return encoded, hash_text(encoded)
