"""What is wrong with a graph is found before anything runs, and named by its path."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.graph.checks import MAX_NODES, check_graph
from headrace.model.graph.conditions import Condition, Never, Test
from headrace.model.graph.form import parse_graph
from headrace.model.graph.nodes import (
    Edge,
    Graph,
    LoopNode,
    MapNode,
    NodeOptions,
    RetryRule,
    SubNode,
    TaskNode,
    WaitNode,
)
from tests.effort import bounded_work

Data = dict[str, Any]


def task(name: str, **more: Any) -> Data:
    """Return the form of a task's node."""
    return {"id": name, "task": "t", **more}


def graph(*nodes: Data, edges: str = "", **more: Any) -> Data:
    """Return the form of a graph; `edges` as "a>b b>c"."""
    pairs = [edge.split(">") for edge in edges.split()]
    return {"nodes": list(nodes), "edges": [{"from": one, "to": other} for one, other in pairs], **more}


A, B, C = task("a"), task("b"), task("c")
INNER = graph(task("x"))
LOOP = {"id": "l", "kind": "loop", "body": INNER, "while": {"op": "truthy"}, "max_rounds": 3}


def test_a_graph_that_can_run_is_returned() -> None:
    """With every kind of node, references back, and any node of it in its output."""
    data = graph(
        task("a", on_error="output", args=[{"$input": ["x"]}, {"$ref": "#/$defs"}, {"$literal": {"$node": "z"}}]),
        {"id": "m", "kind": "map", "over": {"$node": "a"}, "max_failed": None,
         "body": graph(task("x", args=[{"$index": True}]), task("y", kwargs={"page": {"$node": "x", "path": ["p"]}}),
                       edges="x>y", output={"$node": "x"})},
        {**LOOP, "input": {"$node": "a", "path": [0, "x"]}, "max_rounds": 10_000},
        {"id": "s", "kind": "workflow", "body": INNER, "join": 2},
        {"id": "w", "kind": "wait", "signal": {"$run": ["id"]}, "timeout": 5},
        {"id": "v", "kind": "value", "value": {"$node": "a"}, "priority": 9},
        task("end", join="any"),
        edges="a>m m>l a>s m>s l>s s>w w>v v>end s>end",
        output=[{"$node": "m"}, {"$node": "end"}],
    )  # fmt: skip
    data["edges"].append({"from": "a", "to": "end", "port": "error", "when": {"path": "kind", "op": "eq", "value": 1}})
    data["edges"].append({"from": "a", "to": "end", "port": "error", "when": {"path": "kind", "op": "eq", "value": 2}})
    parsed = parse_graph(data)
    assert check_graph(parsed) is parsed


@pytest.mark.parametrize(
    ("data", "field", "said"),
    [
        (graph(), "graph.nodes", "a node at least"),
        (graph(A, B, A), "graph.nodes[2].id", "only one"),
        (graph(task("")), "graph.nodes[0].id", "1 to 64"), (graph(task("a/b")), "graph.nodes[0].id", "1 to 64"),
        (graph(task("a" * 65)), "graph.nodes[0].id", "1 to 64"), (graph(task("a\n")), "graph.nodes[0].id", "1 to 64"),
        (graph({**A, "task": "No Task"}), "graph.nodes[0].task", "must match"),
        (graph(task("a", kwargs={"$input": []})), "graph.nodes[0].kwargs", "parameters"),
        (graph(A, edges="a>z"), "graph.edges[0].to", "same graph"),
        (graph(A, B, edges="a>b z>b"), "graph.edges[1].from", "same graph"),
        (graph(A, B, edges="a>b a>b"), "graph.edges[1]", "twice"),
        (graph(A, edges="a>a"), "graph.edges[0]", "'a → a'"),
        (graph(A, B, edges="b>a a>b"), "graph.edges[0]", "'a → b → a'"),
        (graph(task("z"), A, B, C, task("after"), edges="z>a a>b b>c c>a b>after"), "graph.edges[3]",
         "'a → b → c → a'"),
        (graph(task("after"), A, B, C, edges="a>b b>c c>a c>after"), "graph.edges[2]", "'a → b → c → a'"),
        (graph(task("a", join=1)), "graph.nodes[0].join", "left out"),
        (graph(A, B, task("c", join=3), edges="a>c b>c"), "graph.nodes[2].join", "from 1 to 2"),
        (graph(A, task("b", join=0), edges="a>b"), "graph.nodes[1].join", "from 1 to 1"),
        (graph(task("a", version=0)), "graph.nodes[0].version", "at least 1"),
        (graph(task("a", timeout=0)), "graph.nodes[0].timeout", "more than 0"),
        (graph(task("a", retry={"strategy": "none"})), "graph.nodes[0].retry.strategy", "fixed, linear"),
        (graph(task("a", retry={"max_tries": 0})), "graph.nodes[0].retry.max_tries", "from 1 to 100"),
        (graph(task("a", retry={"base": "1h", "cap": "1s"})), "graph.nodes[0].retry.cap", "below base"),
        (graph({"id": "w", "kind": "wait"}), "graph.nodes[0].signal", "what to wait for"),
        (graph({"id": "w", "kind": "wait", "timeout": 0}), "graph.nodes[0].timeout", "more than 0"),
        (graph({**LOOP, "max_rounds": 0}), "graph.nodes[0].max_rounds", "from 1 to 10,000"),
        (graph({**LOOP, "max_rounds": 10_001}), "graph.nodes[0].max_rounds", "from 1 to 10,000"),
        (graph({**LOOP, "while": {"any": [{"op": "in", "value": "abc"}]}}), "graph.nodes[0].while.any[0].value",
         "array"),
        (graph({**LOOP, "while": {"op": "empty", "value": 0}}), "graph.nodes[0].while.value", "left out"),
        (graph({"id": "m", "kind": "map", "over": [], "body": INNER, "max_failed": -1}), "graph.nodes[0].max_failed",
         "at least 0"),
        (graph(A, {"id": "m", "kind": "map", "over": [], "body": graph()}), "graph.nodes[1].body.nodes", "at least"),
        (graph(A, {"id": "s", "kind": "workflow", "body": graph(A, B, edges="a>b b>a")}),
         "graph.nodes[1].body.edges[1]", "a → b → a"),
        (graph(A, tags=["x", ""]), "graph.tags[1]", "1 to 64"),
        (graph(A, on_failure="No!"), "graph.on_failure", "match"),
    ],
)  # fmt: skip
def test_a_fault_is_named(data: Data, field: str, said: str) -> None:
    """By the path of the first fault, the rule that it breaks and the value."""
    with pytest.raises(InvalidInputError) as refused:
        check_graph(parse_graph(data))
    assert refused.value.field == field
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("data", "field", "said"),
    [
        (graph(task("a", args=[1, {"x": [{"$node": "b"}]}]), B), "graph.nodes[0].args[1].x[0].$node", "comes before a"),
        (graph(task("a", args=[{"$node": "a"}])), "graph.nodes[0].args[0].$node", "comes before a"),
        (graph(task("a", kwargs={"k": {"$node": "b"}}), B, edges="a>b"), "graph.nodes[0].kwargs.k.$node", "before a"),
        (graph(A, B, {"id": "v", "kind": "value", "value": {"$node": "a"}}, edges="b>v"), "graph.nodes[2].value.$node",
         "comes before v"),
        (graph(A, {"id": "w", "kind": "wait", "signal": {"$node": "z"}}), "graph.nodes[1].signal.$node", "same graph"),
        (graph(A, {"id": "m", "kind": "map", "over": {"$node": "x"}, "body": INNER}, edges="a>m"),
         "graph.nodes[1].over.$node", "same graph"),
        (graph(A, {"id": "s", "kind": "workflow", "body": graph(task("x", args=[{"$node": "a"}]))}, edges="a>s"),
         "graph.nodes[1].body.nodes[0].args[0].$node", "same graph"),
        (graph(A, {**LOOP, "input": {"$node": "a"}}), "graph.nodes[1].input.$node", "comes before l"),
        (graph(A, output={"x": {"$node": "z"}}), "graph.output.x.$node", "same graph"),
        (graph(task("a", args=[{"$first": [1, {"$text": [{"$node": "z"}]}]}])),
         "graph.nodes[0].args[0].$first[1].$text[0].$node", "same graph"),
        (graph(task("a", args=[{"$text": "x"}])), "graph.nodes[0].args[0].$text", "$literal"),
        (graph(task("a", args=[{"$node": 7}])), "graph.nodes[0].args[0].$node", "$literal"),
        (graph(task("a", args=[{"$input": "url"}])), "graph.nodes[0].args[0].$input", "$literal"),
        (graph(task("a", args=[{"$run": [], "also": 1}])), "graph.nodes[0].args[0].$run", "$literal"),
    ],
)  # fmt: skip
def test_templates_refer_to_what_comes_before(data: Data, field: str, said: str) -> None:
    """To nodes of the same graph from which a way leads to the node; the markers have the right shape."""
    with pytest.raises(InvalidInputError) as refused:
        check_graph(parse_graph(data))
    assert refused.value.field == field
    assert said in str(refused.value)


@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_an_error_port_needs_an_error_output(on_error: str) -> None:
    """An edge that could never lead on is refused, as is a port without a name."""
    edge = {"from": "a", "to": "b", "port": "error"}
    data = {"nodes": [task("a", on_error=on_error), B], "edges": [edge]}
    with pytest.raises(InvalidInputError, match=r"graph.edges\[0\].port .*on_error"):
        check_graph(parse_graph(data))
    data["edges"] = [{**edge, "port": ""}]
    with pytest.raises(InvalidInputError, match=r"graph.edges\[0\].port"):
        check_graph(parse_graph(data))


def test_values_that_no_form_can_hold_are_refused_too() -> None:
    """Graphs made in Python are looked at as those from JSON are."""
    body, plain = Graph((TaskNode("x", "t"),)), TaskNode("a", "t")
    deep: Condition = Test((), "truthy")
    for _ in range(5_000):
        deep = Never(deep)
    options = NodeOptions
    for node, field in [
        (LoopNode("l", body, Test((), "truthy"), None), "max_rounds"),  # type: ignore[arg-type]
        (LoopNode("l", body, Test((), "like"), 3), "while.op"),
        (LoopNode("l", body, Test((1.5,), "truthy"), 3), "while.path"),  # type: ignore[arg-type]
        (LoopNode("l", body, deep, 3), "while"),
        (MapNode("m", [], body, True), "max_failed"),
        (WaitNode("w", "k", options=options(timeout=timedelta(1))), "timeout"),
        (replace(plain, options=options(priority=10)), "priority"),
        (replace(plain, options=options(estimate=timedelta(-1))), "estimate"),
        (replace(plain, options=options(retry=RetryRule(base=timedelta(-1)))), "retry.base"),
        (replace(plain, task=None), "task"),
    ]:
        with pytest.raises(InvalidInputError) as refused:
            check_graph(Graph((node,)), field="flow")
        assert refused.value.field == f"flow.nodes[0].{field}"


def nested(levels: int) -> Graph:
    """Return so many graphs in one another."""
    made = Graph((TaskNode("x", "t"),))
    for _ in range(levels - 1):
        made = Graph((SubNode("s", made),))
    return made


def test_sizes_are_bounded() -> None:
    """By the nodes of all graphs within together, and by how deep they lie, whatever the depth."""
    check_graph(nested(8))
    for levels in (9, 5_000):
        with pytest.raises(InvalidInputError, match="deeper than 8 graphs") as refused:
            check_graph(nested(levels))
        assert refused.value.field == "graph" + ".nodes[0].body" * 8
    many = Graph(tuple(TaskNode(f"n{index}", "t") for index in range(MAX_NODES // 2)))
    check_graph(Graph((*many.nodes[1:], SubNode("s", many))))
    with pytest.raises(InvalidInputError, match="at most 500 nodes"):
        check_graph(Graph((*many.nodes, SubNode("s", many))))


def test_large_graphs_are_checked_at_once() -> None:
    """The longest chain, with each node referring to all before it, and a cycle through all, are no work."""
    names = [f"n{index}" for index in range(MAX_NODES)]
    nodes = tuple(
        TaskNode(name, "t", tuple({"$node": other} for other in names[max(0, place - 50) : place]))
        for place, name in enumerate(names)
    )
    edges = tuple(Edge(one, other) for one, other in itertools.pairwise(names))
    with bounded_work(2):
        check_graph(Graph(nodes, edges))
        with pytest.raises(InvalidInputError) as refused:
            check_graph(Graph(nodes, (*edges, Edge(names[-1], names[0]))))
    assert refused.value.field == "graph.edges[499]"
    assert refused.value.value == " → ".join([*names, names[0]])
