"""The JSON form of graphs: read, written, and refused with the path of what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headrace.model.errors import InvalidInputError, PayloadTooLargeError
from headrace.model.graph.checks import check_graph
from headrace.model.graph.conditions import Every, Never, Some, Test
from headrace.model.graph.form import encode_graph, graph_form, parse_graph
from headrace.model.graph.nodes import (
    Edge,
    Graph,
    LoopNode,
    MapNode,
    NodeOptions,
    OnError,
    OnOpen,
    RetryRule,
    SubNode,
    TaskNode,
    ValueNode,
    WaitNode,
)
from tests.unit.graph_strategies import GRAPHS

BODY = {"nodes": [{"id": "x", "task": "t"}]}
X = Graph((TaskNode("x", "t"),))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(GRAPHS)
def test_what_is_written_is_read_back(graph: Graph) -> None:
    """Of any graph, through JSON text, to the microsecond; equal graphs have the same text and hash."""
    assert parse_graph(graph_form(graph)) == graph
    text, digest = encode_graph(graph)
    assert parse_graph(json.loads(text)) == graph
    assert encode_graph(parse_graph(json.loads(text))) == (text, digest)


def test_every_member_is_read() -> None:
    """A node of each kind with all it can have."""
    options = {"on_error": "output", "join": "any", "retry": {"strategy": "fixed", "max_tries": 3, "base": "5s",
               "cap": "1m", "jitter": False, "on": ["OSError"]}, "timeout": "90s", "priority": "high", "version": 2,
               "estimate": 0.25, "on_open": "skip"}  # fmt: skip
    data = {
        "nodes": [
            {"id": "a", "kind": "task", "task": "t", "args": [{"$input": []}], "kwargs": {"n": 1}, **options},
            {"id": "v", "kind": "value", "value": None},
            {"id": "w", "kind": "wait", "signal": "k", "timeout": "5m"},
            {"id": "m", "kind": "map", "over": [1], "body": BODY, "max_failed": None},
            {"id": "l", "kind": "loop", "body": BODY, "while": {"op": "truthy"}, "max_rounds": 5, "input": 0},
            {"id": "s", "kind": "workflow", "body": BODY, "join": "all"},
        ],
        "edges": [{"from": "a", "to": "v", "port": "error"}, {"from": "a", "to": "w", "when": {"op": "exists"}}],
        "output": {"$node": "a"},
        "tags": ["schedule:node_level"],
        "on_failure": "repair",
    }
    rule = RetryRule("fixed", 3, timedelta(seconds=5), timedelta(minutes=1), False, ("OSError",))
    every = NodeOptions(OnError.OUTPUT, 1, rule, timedelta(seconds=90), 3, 2, timedelta(milliseconds=250), OnOpen.SKIP)
    assert parse_graph(data) == Graph(
        (
            TaskNode("a", "t", ({"$input": []},), (("n", 1),), every),
            ValueNode("v", None, given=True),
            WaitNode("w", "k", timedelta(minutes=5)),
            MapNode("m", [1], X, None),
            LoopNode("l", X, Test((), "truthy"), 5, 0, given=True),
            SubNode("s", X),
        ),
        (Edge("a", "v", "error"), Edge("a", "w", when=Test((), "exists"))),
        {"$node": "a"},
        True,
        ("schedule:node_level",),
        "repair",
    )


def test_what_is_as_usual_is_left_out() -> None:
    """The form of a plain graph has nothing in it that one would not write."""
    form = {"nodes": [{"id": "a", "task": "t"}, {"id": "m", "kind": "map", "over": [1], "body": BODY}],
            "edges": [{"from": "a", "to": "m"}]}  # fmt: skip
    assert graph_form(parse_graph(form)) == form


def test_null_is_written_where_it_means_something() -> None:
    """A value, an input and an output of null, and no bound of failures, are not the same as none."""
    form = {
        "nodes": [
            {"id": "v", "kind": "value", "value": None},
            {"id": "s", "kind": "workflow", "body": BODY, "input": None},
            {"id": "m", "kind": "map", "over": [], "body": BODY, "max_failed": None},
        ],
        "output": None,
    }
    assert graph_form(parse_graph(form)) == form
    assert parse_graph({"nodes": []}) != parse_graph({"nodes": [], "output": None})


def test_what_a_graph_was_made_of_is_kept_as_it_was_written() -> None:
    """Whatever it looks like: it is no template, and part of what the graph is known by."""
    source = {"nodes": [{"$node": "nowhere"}], "unknown": [1, None]}
    graph = parse_graph({"nodes": BODY["nodes"], "source": source})
    assert graph_form(graph)["source"] == source
    assert check_graph(graph).source == source
    assert encode_graph(graph)[1] != encode_graph(replace(graph, source=None))[1]


def test_conditions_are_read() -> None:
    """Paths as text or array, and conditions of conditions."""
    when = {"all": [{"path": "a.b", "op": "eq", "value": 1}, {"not": {"path": ["a.b", 0], "op": "missing"}},
                    {"any": []}]}  # fmt: skip
    edge = parse_graph({"nodes": [], "edges": [{"from": "a", "to": "b", "when": when}]}).edges[0]
    assert edge.when == Every((Test(("a", "b"), "eq", 1), Never(Test(("a.b", 0), "missing")), Some(())))


NODE = {"id": "a", "task": "t"}
LOOP = {"id": "l", "kind": "loop", "body": BODY, "while": {"op": "truthy"}, "max_rounds": 2}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (None, "graph"), ([], "graph"), ({}, "graph.nodes"), ({"nodes": {}}, "graph.nodes"),
        ({"nodes": [], "egdes": []}, "graph.egdes"), ({"nodes": [7]}, "graph.nodes[0]"),
        ({"nodes": [{"task": "t"}]}, "graph.nodes[0].id"), ({"nodes": [{"id": 7, "task": "t"}]}, "graph.nodes[0].id"),
        ({"nodes": [{"id": "a"}]}, "graph.nodes[0].task"),
        ({"nodes": [NODE, {**NODE, "kind": "magic"}]}, "graph.nodes[1].kind"),
        ({"nodes": [{**NODE, "value": 1}]}, "graph.nodes[0].value"),
        ({"nodes": [{**NODE, "args": {}}]}, "graph.nodes[0].args"),
        ({"nodes": [{**NODE, "kwargs": []}]}, "graph.nodes[0].kwargs"),
        ({"nodes": [{**NODE, "timeout": "soon"}]}, "graph.nodes[0].timeout"),
        ({"nodes": [{**NODE, "on_error": "ignore"}]}, "graph.nodes[0].on_error"),
        ({"nodes": [{**NODE, "on_error": ["stop"]}]}, "graph.nodes[0].on_error"),
        ({"nodes": [{**NODE, "on_open": 1}]}, "graph.nodes[0].on_open"),
        ({"nodes": [{**NODE, "join": "most"}]}, "graph.nodes[0].join"),
        ({"nodes": [{**NODE, "join": True}]}, "graph.nodes[0].join"),
        ({"nodes": [{**NODE, "priority": 10}]}, "graph.nodes[0].priority"),
        ({"nodes": [{**NODE, "version": 1.0}]}, "graph.nodes[0].version"),
        ({"nodes": [NODE, {**NODE, "retry": {"max_tries": "3"}}]}, "graph.nodes[1].retry.max_tries"),
        ({"nodes": [{**NODE, "retry": {"jitter": 1}}]}, "graph.nodes[0].retry.jitter"),
        ({"nodes": [{**NODE, "retry": {"on": ["A", 1]}}]}, "graph.nodes[0].retry.on[1]"),
        ({"nodes": [{**NODE, "retry": {"tries": 3}}]}, "graph.nodes[0].retry.tries"),
        ({"nodes": [{"id": "m", "kind": "map", "body": BODY}]}, "graph.nodes[0].over"),
        ({"nodes": [{"id": "m", "kind": "map", "over": []}]}, "graph.nodes[0].body"),
        ({"nodes": [{"id": "m", "kind": "map", "over": [], "body": {"nodes": [{"id": "b"}]}}]},
         "graph.nodes[0].body.nodes[0].task"),
        ({"nodes": [{**LOOP, "max_rounds": None}]}, "graph.nodes[0].max_rounds"),
        ({"nodes": [{**LOOP, "max_rounds": "9"}]}, "graph.nodes[0].max_rounds"),
        ({"nodes": [{**LOOP, "while": {"op": "matches"}}]}, "graph.nodes[0].while.op"),
        ({"nodes": [{**LOOP, "while": {"path": 7, "op": "eq"}}]}, "graph.nodes[0].while.path"),
        ({"nodes": [{**LOOP, "while": {"path": "a"}}]}, "graph.nodes[0].while.op"),
        ({"nodes": [{**LOOP, "while": {"all": [{"op": "eq"}, {"not": []}]}}]}, "graph.nodes[0].while.all[1].not"),
        ({"nodes": [{**LOOP, "while": {"all": [], "any": []}}]}, "graph.nodes[0].while.any"),
        ({"nodes": [], "edges": [{"to": "a"}]}, "graph.edges[0].from"),
        ({"nodes": [], "edges": [{"from": "a", "to": "b", "if": {}}]}, "graph.edges[0].if"),
        ({"nodes": [], "tags": "x"}, "graph.tags"), ({"nodes": [], "on_failure": 7}, "graph.on_failure"),
        ({"nodes": [], "output": float("nan")}, "graph"), ({"nodes": [], "output": {1, 2}}, "graph"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_path(data: Any, field: str) -> None:
    """Unknown members, wrong types and what is missing are refused, never with another error."""
    with pytest.raises(InvalidInputError) as refused:
        parse_graph(data)
    assert refused.value.field == field


def test_data_of_any_depth_and_size_is_refused_with_our_error() -> None:
    """Nesting cannot exhaust the stack, nor size the memory of workers."""
    deep: Any = {"nodes": []}
    for _ in range(3_000):
        deep = {"nodes": [{"id": "s", "kind": "workflow", "body": deep}]}
    with pytest.raises(InvalidInputError, match="nested"):
        parse_graph(deep)
    with pytest.raises(PayloadTooLargeError):
        parse_graph({"nodes": [], "output": "x" * 1_100_000})


def test_a_graph_is_known_by_its_hash() -> None:
    """The order of a node's members does not count, that of what users wrote does; what is no JSON is refused."""
    one = parse_graph({"nodes": [{"id": "a", "task": "t", "kwargs": {"x": 1, "y": {"b": 1, "a": 2}}}]})
    other = parse_graph({"nodes": [{"kwargs": {"x": 1, "y": {"b": 1, "a": 2}}, "task": "t", "id": "a"}]})
    assert encode_graph(one) == encode_graph(other)
    assert '"y":{"b":1,"a":2}' in encode_graph(one)[0]
    turned = parse_graph({"nodes": [{"id": "a", "task": "t", "kwargs": {"x": 1, "y": {"a": 2, "b": 1}}}]})
    assert encode_graph(turned)[1] != encode_graph(one)[1]
    assert encode_graph(one)[1] != encode_graph(replace(one, tags=("x",)))[1]
    with pytest.raises(InvalidInputError):
        encode_graph(Graph((ValueNode("v", object(), given=True),)))
