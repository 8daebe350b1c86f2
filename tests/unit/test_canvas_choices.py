"""Parts that run under a condition, and what comes behind them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.canvas import build, chain, choose, group, pause, signature, when
from headrace.canvas.conditions import Clause
from headrace.model.graph.conditions import Every, Never, Some, Test
from headrace.model.graph.holding import OPS
from headrace.model.graph.nodes import Edge, Graph, ValueNode
from tests.unit.canvas_runs import Runner, shown

fetch, scan, read, skim, store = map(signature, ["fetch", "scan", "read", "skim", "store"])
PDF, TXT = when("kind").eq("pdf"), when("kind").eq("txt")


def result(graph: Graph, kind: str) -> Any:
    """Return the output of a run whose `fetch` gives something of that kind."""
    tasks: dict[str, Any] = {name: lambda *args, name=name: [name, *args[1:]] for name in ("scan", "read", "skim")}
    return Runner(graph, {**tasks, "fetch": lambda *_: {"kind": kind}, "store": shown}, {"kind": kind}).output()


def test_edges_have_the_conditions_and_meet_in_one_node() -> None:
    """The first condition that holds counts: later edges rule out the ones before."""
    graph = build(chain(fetch.s("u"), choose(PDF, scan.s(), TXT, read.s(), otherwise=skim.s()), store.s()))
    pdf, txt = Test(("kind",), "eq", "pdf"), Test(("kind",), "eq", "txt")

    assert graph.edges[:3] == (
        Edge("fetch", "scan", when=pdf),
        Edge("fetch", "read", when=Every((Never(pdf), txt))),
        Edge("fetch", "skim", when=Every((Never(pdf), Never(txt)))),
    )
    chosen = graph.nodes[4]
    assert isinstance(chosen, ValueNode) and chosen.id == "chosen" and chosen.options.join == 1
    assert chosen.value == {"$first": [{"$node": "scan"}, {"$node": "read"}, {"$node": "skim"}]}


@pytest.mark.parametrize(("kind", "name"), [("pdf", "scan"), ("txt", "read"), ("png", "skim")])
def test_the_one_that_ran_gives_the_value(kind: str, name: str) -> None:
    """Whichever it was, and wherever the choice stands."""
    choice = choose(PDF, scan.s(1), TXT, read.s(1), otherwise=skim.s(1))
    assert result(build(chain(fetch.s("u"), choice, store.s())), kind) == [[name, 1]]
    assert result(build(chain(fetch.s("u"), choice)), kind) == [name, 1]
    assert result(build(choice), kind) == [name, 1]


def test_branches_of_several_nodes_meet_as_well() -> None:
    """A group as a list; a pause with what stood before it."""
    branch = group(scan.s(1), read.s(2))
    graph = build(chain(fetch.s("u"), choose(PDF, branch, otherwise=pause("1s")), store.s()))
    assert result(graph, "pdf") == [[["scan", 1], ["read", 2]]]
    assert result(graph, "txt") == [{"kind": "txt"}]


def test_a_choice_in_a_choice() -> None:
    """`otherwise` may be one."""
    inner = choose(TXT, read.s(), otherwise=skim.s())
    graph = build(chain(fetch.s("u"), choose(PDF, scan.s(), otherwise=inner), store.s()))
    assert [result(graph, kind) for kind in ("pdf", "txt", "png")] == [[["scan"]], [["read"]], [["skim"]]]


def test_without_otherwise_what_stands_behind_is_passed_over() -> None:
    """There is no node where nothing meets."""
    graph = build(chain(fetch.s("u"), choose(PDF, scan.s()), store.s()))
    assert [one.id for one in graph.nodes] == ["fetch", "scan", "store"]
    assert (result(graph, "pdf"), result(graph, "txt")) == ([["scan"]], None)


def test_conditions_ask_one_node_for_one_value() -> None:
    """Behind a group, a pause, or at the beginning there is a node that has it."""
    graph = build(chain(group(fetch.s(1), fetch.s(2)), choose(when(1, "kind").eq("pdf"), scan.s())))
    assert graph.edges[2].source == "joined" and graph.nodes[2].id == "joined"
    assert result(graph, "pdf") == ["scan"]
    paused = build(chain(fetch.s("u"), pause("1s"), choose(PDF, scan.s())))
    assert paused.nodes[2] == ValueNode("joined", {"$node": "fetch"}, given=True)
    assert build(choose(PDF, scan.s())).nodes[0] == ValueNode("input", {"$input": []}, given=True)


def test_conditions_are_made_of_each_other() -> None:
    """With the operators of Python for sets."""
    a, b = Test(("a",), "lt", 1), Test((), "exists")
    made = (when("a").lt(1) & ~when().exists()) | when("b", 0).in_((1, 2))
    assert made.condition == Some((Every((a, Never(b))), Test(("b", 0), "in", [1, 2])))


def test_every_comparison_can_be_written() -> None:
    """As a method of the same name; `in` is a word of Python."""
    subject = when("x")
    unary = {"exists", "missing", "truthy", "falsy", "empty"}
    lists = {"in", "not_in"}
    for op in OPS:
        method = getattr(subject, "in_" if op == "in" else op)
        value = [1] if op in lists else "v"
        clause: Clause = method() if op in unary else method(value)
        assert clause.condition == Test(("x",), op, None if op in unary else value)
