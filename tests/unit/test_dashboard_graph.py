"""How graphs are laid out and marked: layers, lines that hide no box, boxes for many, the critical path, the text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from headrace.apps.flows.form import parse_flow
from headrace.dashboard.flow_graph import drawn_flow, facts_of
from headrace.dashboard.graph import HEIGHT, MARGIN, WIDTH, Drawing, draw, fold
from headrace.dashboard.run_graph import RECORD, drawn, labels_of, marks_of, scene_of
from headrace.engine.workflows.tree import TreeNode
from headrace.model.graph.critical import critical_path
from headrace.model.graph.form import parse_graph
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import Edge, Graph, TaskNode
from headrace.model.run import NodeState
from tests.unit.flow_making import flow, node

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(second: float) -> datetime:
    """Return an instant so long after the run began."""
    return NOW + timedelta(seconds=second)


def apart(drawing: Drawing) -> bool:
    """Whether no box lies on another one."""
    return all(
        abs(one[0] - other[0]) >= WIDTH or abs(one[1] - other[1]) >= HEIGHT
        for one, other in combinations(drawing.corners, 2)
    )


def graph(names: str, *edges: str, task: str = "t") -> Layout:
    """Return a graph of tasks named by letters; each edge is two of them."""
    return Layout(Graph(tuple(TaskNode(name, task) for name in names), tuple(Edge(one[0], one[1]) for one in edges)))


def test_each_box_stands_behind_all_that_lead_to_it() -> None:
    """By the longest way; boxes lie apart, within the drawing, and the same graph is drawn the same."""
    links = [("a", "b"), ("b", "c"), ("a", "d"), ("c", "e"), ("d", "e"), ("a", "e")]
    drawing = draw("abcde", links)
    left = dict(zip("abcde", (x for x, _ in drawing.corners), strict=True))
    assert all(left[source] < left[target] for source, target in links)
    assert left["b"] == left["d"] and apart(drawing) and drawing == draw("abcde", links)
    assert all(x + WIDTH + MARGIN <= drawing.width and y + HEIGHT <= drawing.height for x, y in drawing.corners)


def test_a_line_over_layers_hides_no_box() -> None:
    """It passes each layer at a height where no box is."""
    drawing = draw("abc", [("a", "b"), ("b", "c"), ("a", "c")])
    way = next(line.way for line in drawing.lines if (line.source, line.target) == (0, 2))
    turn = re.search(r"H([\d.]+)", way)
    assert turn is not None
    height = float(re.findall(r"[\d.]+", way[: turn.start()])[-1])
    box = drawing.corners[1][1]
    assert not box <= height <= box + HEIGHT


def test_circles_of_flows_are_drawn() -> None:
    """A line that leads back does so below the boxes, within the drawing."""
    drawing = draw("ab", [("a", "b"), ("b", "a")])
    assert len(drawing.lines) == 2 and apart(drawing)
    numbers = [float(number) for line in drawing.lines for number in re.findall(r"-?[\d.]+", line.way)]
    below = [float(number) for line in drawing.lines for number in re.findall(r"[\d.]+ ([\d.]+)", line.way)]
    assert min(numbers) >= 0 and max(numbers) <= drawing.width and max(below) <= drawing.height


def test_boxes_stand_where_people_put_them() -> None:
    """Where each has a place; one that has none lets all stand in layers."""
    places = {"a": (0.0, 300.0), "b": (400.0, 0.0)}
    drawing = draw("ab", [("a", "b")], places)
    assert drawing.corners == ((MARGIN, 300 + MARGIN), (400 + MARGIN, MARGIN))
    assert draw("ab", [("a", "b")], places | {"b": None}) == draw("ab", [("a", "b")])


def test_nothing_is_drawn_of_nothing() -> None:
    """It has room for one box, and none."""
    assert draw([], []).corners == ()


def test_few_that_are_alike_stay_apart() -> None:
    """More than eight of one task between the same neighbours are one box; others are not."""
    names = [f"m{number}" for number in range(8)]
    assert len(fold(names, [], dict.fromkeys(names, "t"))) == 8
    assert len(fold([*names, "m8"], [], dict.fromkeys([*names, "m8"], "t"))) == 1
    assert len(fold([*names, "m8"], [], dict.fromkeys(names, "t") | {"m8": "other"})) == 9


PATHS = (
    ({"a": (0, 1), "b": (1, 5), "c": (1, 9), "d": (9, 10)}, "acd"),
    # what was passed over did not decide anything
    ({"a": (0, 1), "c": (1, 2)}, "ac"),
    ({}, ""),
)


@pytest.mark.parametrize(("times", "expected"), PATHS)
def test_the_critical_path(times: dict[str, tuple[float, float]], expected: str) -> None:
    """Back from the last end, each time over what ended last of those before."""
    before = {"a": "", "b": "a", "c": "a", "d": "bc"}
    spans = {name: (at(begin), at(end)) for name, (begin, end) in times.items()}
    assert "".join(critical_path(before, spans)) == expected


def test_what_has_become_of_boxes_is_a_record_each() -> None:
    """State, path, time so far; a map counts its entries, what was taken over took no time."""
    layout = graph("abcd", "ab", "bc", "ad")
    nodes = [
        TreeNode("a", "task", NodeState.SUCCESS, started_at=at(0), finished_at=at(2)),
        TreeNode("b", "map", NodeState.RUNNING, started_at=at(2), children=[
            TreeNode("b[0]", "entry", NodeState.FAILED), TreeNode("b[1]", "entry", NodeState.RUNNING)]),
        TreeNode("c", "task", NodeState.PENDING),
        TreeNode("d", "task", NodeState.SUCCESS, started_at=at(2), finished_at=at(3), reused=True),
    ]  # fmt: skip
    found = drawn(layout, "", nodes, {"a": "Read it"}, at(9))
    records = [found.text[place : place + RECORD] for place in range(0, len(found.text), RECORD)]
    assert [record.rstrip() for record in records] == ["s!2.0 s", "r!1/2", "p-", "s-"]
    assert {len(record) for record in records} == {RECORD}
    assert [line.kind for line in found.lines] == ["critical", "", ""]
    assert (found.boxes[0].label, found.boxes[0].title, found.boxes[0].path) == ("Read it", "Read it (t)", "a")


def test_many_alike_are_one_box_with_the_worst_state_and_how_many_have_ended() -> None:
    """The box leads to no node of its own."""
    names = [f"m{number}" for number in range(20)]
    layout = Layout(Graph(tuple(TaskNode(name, "t") for name in names)))
    nodes = [TreeNode(name, "task", NodeState.SUCCESS) for name in names]
    nodes[3].state = NodeState.FAILED
    nodes[4].state = NodeState.RUNNING
    [box] = drawn(layout, "", nodes, {}, NOW).boxes
    assert (box.label, box.path) == ("20 × t", "")
    assert box.mark is not None and (box.mark.state, box.mark.remark) == (NodeState.FAILED, "19/20")


def test_each_node_of_a_flow_is_a_box() -> None:
    """However many stand between the same neighbours: they have names of their own."""
    layout = Layout(Graph(tuple(TaskNode(f"n{number}", "flows.node") for number in range(20))))
    assert len(scene_of(layout).boxes) == 20


def test_what_waits_is_of_the_critical_path() -> None:
    """A node that waits for a signal is what the run waits for, and no time of its own is told."""
    scene = scene_of(graph("ab", "ab"))
    nodes = {
        "a": TreeNode("a", "task", NodeState.SUCCESS, started_at=at(0), finished_at=at(1)),
        "b": TreeNode("b", "wait", NodeState.PARKED, waits_for="yes"),
    }
    assert [(mark.critical, mark.remark) for mark in marks_of(scene, nodes, at(5))] == [(True, "1.0 s"), (True, "")]


def test_flows_are_drawn_as_on_their_canvas() -> None:
    """With the names of ports beside where their lines begin, what is off and what begins it told."""
    document = flow(
        [node("Go", "manual"), node("Is?", "if", {"conditions": {}}, position=[300, 0]),
         node("Yes", "noOp", position=[600, 0], disabled=True), node("No", "noOp", position=[600, 120])],
        "Go -> Is?", "Is?:0 -> Yes", "Is?:1 -> No",
    )  # fmt: skip
    found = drawn_flow(parse_flow(document))
    assert [line.label for line in found.lines] == ["", "true", "false"]
    assert len({line.at for line in found.lines}) == 3
    assert [box.kind for box in found.boxes] == ["trigger", "", "disabled", ""]
    assert facts_of(parse_flow(document)).triggers == ("manual",)


def test_nodes_are_called_as_people_call_them() -> None:
    """Where the graph was made of a flow; a source that is none names nothing."""
    assert labels_of(Layout(Graph((), source=flow([node("Édit it", "noOp")])))) == {"edit-it": "Édit it"}
    for source in (None, "text", {"nodes": 3}):
        assert labels_of(Layout(Graph((), source=source))) == {}


def test_500_nodes_are_laid_out_with_bounded_turns() -> None:
    """As many as a graph may have, with lines over all layers."""
    nodes = [{"id": f"n{number}", "task": "t"} for number in range(500)]
    edges = [{"from": f"n{number}", "to": f"n{number + 1}"} for number in range(499)]
    edges += [{"from": "n0", "to": f"n{number}"} for number in range(2, 500)]
    scene = scene_of(Layout(parse_graph({"nodes": nodes, "edges": edges})))
    assert len(scene.boxes) == 500 and sum(line.way.count("H") for line in scene.drawing.lines) <= 500
