"""Which level a run is worked at, and how long its nodes may take in a row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.graph.conditions import Test
from headrace.model.graph.levels import LevelSettings, choose_level, estimate
from headrace.model.graph.nodes import (
    Edge,
    Graph,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    SubNode,
    TaskNode,
    ValueNode,
    WaitNode,
)
from headrace.model.run import Level

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
AGAIN = Test((), "truthy")


def tasks(count: int, first: int = 0) -> tuple[Node, ...]:
    """Return so many tasks without edges: t0, t1, …"""
    return tuple(TaskNode(f"n{index}", f"t{index}") for index in range(first, first + count))


def chosen(
    graph: Graph,
    settings: LevelSettings | None = None,
    estimates: dict[str, timedelta] | None = None,
    own_jobs: tuple[str, ...] = (),
) -> tuple[Level, str]:
    """Return what is chosen, with the usual settings and nothing known of tasks."""
    return choose_level(graph, settings=settings or LevelSettings(), estimates=estimates or {}, own_jobs=own_jobs)


def test_the_number_of_nodes_decides() -> None:
    """Up to the bound by one job, beyond it node by node, and the reason has both numbers."""
    assert chosen(Graph(tasks(1))) == (Level.WORKFLOW, "1 node, at most 10")
    assert chosen(Graph(tasks(10))) == (Level.WORKFLOW, "10 nodes, at most 10")
    assert chosen(Graph(tasks(11))) == (Level.NODE, "11 nodes, more than 10")
    assert chosen(Graph(tasks(3)), LevelSettings(most_nodes=2)) == (Level.NODE, "3 nodes, more than 2")


def test_nodes_within_count_but_those_of_maps() -> None:
    """A graph within counts with all its nodes; a map is one node, however many entries it will have."""
    assert chosen(Graph((*tasks(5), SubNode("s", Graph(tasks(5))))))[1] == "11 nodes, more than 10"
    assert chosen(Graph((*tasks(5), LoopNode("l", Graph(tasks(5)), AGAIN, 3))))[0] is Level.NODE
    assert chosen(Graph((*tasks(5), MapNode("m", [], Graph(tasks(20))))))[1] == "6 nodes, at most 10"


def test_the_estimate_decides() -> None:
    """The slowest way counts, not the sum of all."""
    graph = Graph((*tasks(3), ValueNode("v")), (Edge("n0", "n1"), Edge("n2", "v")))
    known = {"t0": 3 * MINUTE, "t1": 2 * MINUTE, "t2": 5 * MINUTE}
    assert chosen(graph, estimates=known) == (Level.WORKFLOW, "4 nodes, at most 10; about 5 m, at most 5 m")
    known["t1"] += SECOND
    assert chosen(graph, estimates=known) == (Level.NODE, "about 5 m 1 s, more than 5 m")
    assert chosen(graph, LevelSettings(longest=6 * MINUTE), known)[0] is Level.WORKFLOW


def test_a_wait_is_worked_node_by_node() -> None:
    """A job that works a whole run should not hold its slot while nothing of it runs."""
    waits = Graph((WaitNode("approval", "k"),))
    assert chosen(waits) == (Level.NODE, "node approval waits")
    assert chosen(Graph((MapNode("m", [], waits),))) == (Level.NODE, "node approval waits")


def test_what_was_told_comes_before_what_was_counted() -> None:
    """Tasks that need jobs of their own before a tag, that before the settings, these before the graph."""
    small, large = Graph(tasks(2)), Graph(tasks(20))
    whole, by_node = LevelSettings("workflow_level"), LevelSettings("node_level")
    assert chosen(large, whole) == (Level.WORKFLOW, "default_mode is workflow_level")
    assert chosen(small, by_node) == (Level.NODE, "default_mode is node_level")
    level, reason = chosen(Graph((SubNode("s", small),)), whole, own_jobs=("t1",))
    assert level is Level.NODE
    assert reason.startswith("task t1 passes a gate")
    tagged = replace(large, tags=("nightly", "schedule:workflow_level"))
    assert chosen(tagged, by_node) == (Level.WORKFLOW, "tag schedule:workflow_level")
    assert chosen(tagged, by_node, own_jobs=("t1",)) == (Level.NODE, reason)
    assert chosen(replace(small, tags=("schedule:node_level",)), whole) == (Level.NODE, "tag schedule:node_level")


def test_another_mode_is_refused() -> None:
    """With the words that there are."""
    with pytest.raises(InvalidInputError, match="hybrid, workflow_level, node_level"):
        LevelSettings("inline")


def test_an_estimate_is_of_what_is_known() -> None:
    """Declared before measured; a loop takes all its rounds, a map one entry, the unknown nothing."""
    slow = TaskNode("slow", "t0", options=NodeOptions(estimate=MINUTE))
    body = Graph((slow, *tasks(1, first=7)), (Edge("slow", "n7"),))
    assert estimate(Graph(tasks(3)), {"other": MINUTE}) is None
    assert estimate(Graph((ValueNode("v"), *tasks(2))), {"t1": SECOND}) == SECOND
    assert estimate(Graph((slow,)), {"t0": SECOND}) == MINUTE
    assert estimate(body, {"t7": SECOND}) == MINUTE + SECOND
    assert estimate(Graph((LoopNode("l", body, AGAIN, 5),)), {}) == 5 * MINUTE
    assert estimate(Graph((MapNode("m", [1, 2], body),)), {}) == MINUTE
    assert estimate(Graph((SubNode("s", body, options=NodeOptions(estimate=SECOND)),)), {}) == SECOND
    assert estimate(Graph((SubNode("s", Graph(tasks(1))),)), {}) is None


def test_an_estimate_beyond_all_durations_is_still_one() -> None:
    """Loops in loops multiply."""
    graph = Graph((TaskNode("t", "t", options=NodeOptions(estimate=timedelta(days=30_000))),))
    for _ in range(7):
        graph = Graph((LoopNode("l", graph, AGAIN, 10_000),))
    assert estimate(graph, {}) == timedelta(days=36_525)
    assert chosen(graph)[0] is Level.NODE
