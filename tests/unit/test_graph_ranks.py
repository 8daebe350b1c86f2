"""Priorities of nodes: by their kind, or by what lies behind them."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.graph.conditions import Test
from headrace.model.graph.nodes import (
    Edge,
    Graph,
    LoopNode,
    MapNode,
    NodeOptions,
    SubNode,
    TaskNode,
    ValueNode,
    WaitNode,
)
from headrace.model.graph.ranks import priorities

BODY = Graph((TaskNode("x", "t"),))
KINDS = Graph(
    (
        TaskNode("task", "t"),
        ValueNode("value"),
        WaitNode("wait", "k"),
        MapNode("map", [], BODY),
        LoopNode("loop", BODY, Test((), "truthy"), 3),
        SubNode("sub", BODY),
        TaskNode("own", "t", options=NodeOptions(priority=0)),
    )
)


def chain(*names: str) -> tuple[Edge, ...]:
    """Return the edges from each name to the next."""
    return tuple(Edge(one, other) for one, other in itertools.pairwise(names))


def tasks(names: str, **seconds: float) -> tuple[TaskNode, ...]:
    """Return a task for each letter; some with an estimate."""
    known = {name: NodeOptions(estimate=timedelta(seconds=amount)) for name, amount in seconds.items()}
    return tuple(TaskNode(name, "t", options=known.get(name, NodeOptions())) for name in names)


def test_by_node_type_goes_by_the_kind() -> None:
    """What costs nothing comes first, tasks are standard, and what a node itself says counts before."""
    ranks = {"task": 5, "value": 3, "wait": 3, "map": 5, "loop": 4, "sub": 4, "own": 0}
    assert priorities(KINDS, "by_node_type") == ranks
    assert priorities(KINDS, "by_node_type", {"task": 8, "map": 1}) == {**ranks, "task": 8, "map": 1}


def test_by_dependency_depth_puts_the_critical_path_first() -> None:
    """The longer the way ahead, the smaller the number: 3 for the longest, 7 for the shortest."""
    graph = Graph(tasks("abcdexy"), (*chain(*"abcde"), *chain("a", "x"), *chain("y", "e")))
    assert priorities(graph, "by_dependency_depth") == {"a": 3, "b": 4, "c": 5, "d": 6, "e": 7, "x": 7, "y": 6}


def test_estimates_are_the_length_of_a_way() -> None:
    """One slow node counts for more than a chain of quick ones."""
    graph = Graph(tasks("abcz", a=1, b=1, c=1, z=60), chain(*"abc"))
    ranks = priorities(graph, "by_dependency_depth")
    assert ranks["z"] == 3
    assert ranks["a"] == ranks["b"] == ranks["c"] == 7


def test_nodes_alike_are_standard_and_their_own_word_counts() -> None:
    """Without a difference in depth nothing is moved; a node's own priority stays as it is."""
    assert priorities(Graph(tasks("ab")), "by_dependency_depth") == {"a": 5, "b": 5}
    own = TaskNode("own", "t", options=NodeOptions(priority=9))
    assert priorities(Graph((own, *tasks("ab")), chain("own", "a")), "by_dependency_depth")["own"] == 9


def test_another_strategy_is_refused() -> None:
    """With the words that there are."""
    with pytest.raises(InvalidInputError, match="by_node_type, by_dependency_depth"):
        priorities(BODY, "by_luck")
