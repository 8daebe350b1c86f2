"""Flows as Mermaid text and as SVG: every text is shown as it is, and boxes stand apart."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from headrace.apps.flows.drawing.layout import HEIGHT, WIDTH, place_boxes
from headrace.apps.flows.drawing.mermaid import escaped, to_mermaid
from headrace.apps.flows.drawing.picture import Box, Line, Picture, picture_of
from headrace.apps.flows.drawing.svg import cut, to_svg
from headrace.apps.flows.form import parse_flow
from tests.unit.flow_making import flow, node

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    '"];click n0 "x"',
    "<script>alert(1)</script>",
    "a & b",
    "]]>",
    "`md`",
    "1. list",
    "end",
    "\ud800\x00\x1b[31m",
    "节点",
]
#: All that a line of our Mermaid text may be.
GRAMMAR = re.compile(
    r'  n\d+(\["[^"]*"\]|\(\["[^"]*"\]\)|\[\["[^"]*"\]\])(:::[a-z]+)?'
    r'|  n\d+ (-->|-\.->)(\|"[^"]*"\|)? n\d+'
    r"|  linkStyle [\d,]+ stroke:#[0-9a-f]{6},color:#[0-9a-f]{6}"
    r"|  classDef [a-z]+ [a-z-]+:[^;\"]+"
)


def example(**more: Any) -> dict[str, Any]:
    """Return a flow with a branch, a loop, a merge, an error port, a note and a node that is off."""
    nodes = [
        node("Go", "manual"), node("If", "if"), node("Loop", "splitInBatches", typeVersion=3),
        node("Body", "noOp", onError="continueErrorOutput"), node("Merge", "merge", {"mode": "append"}, typeVersion=3),
        node("Off", "noOp", disabled=True), node("Note", "stickyNote", {"content": "Read <this> & that"}),
    ]  # fmt: skip
    wires = ("Go -> If", "If:0 -> Loop", "If:1 -> Merge:1", "Loop:1 -> Body", "Body -> Loop", "Body:1 -> Off")
    return flow(nodes, *wires, "Loop:0 -> Merge:0", **more)


def boxes_of(svg: str) -> list[ElementTree.Element]:
    """Return the rectangles of nodes in a drawing."""
    return [one for one in ElementTree.fromstring(svg).iter(f"{SVG}rect") if one.get("class") == "box"]


def test_a_picture_has_the_names_of_ports() -> None:
    """Ports are named, that of errors too; inputs where there are several; notes are apart."""
    picture = picture_of(parse_flow(example()))
    assert [(line.source, line.target, line.label, line.kind) for line in picture.lines] == [
        ("Go", "If", "", "main"),
        ("If", "Loop", "true", "main"),
        ("If", "Merge", "false → input 2", "main"),
        ("Loop", "Merge", "done → input 1", "main"),
        ("Loop", "Body", "loop", "main"),
        ("Body", "Loop", "", "main"),
        ("Body", "Off", "error", "error"),
    ]
    assert [box.name for box in picture.boxes] == ["Go", "If", "Loop", "Body", "Merge", "Off"]
    assert [note.text for note in picture.notes] == ["Read <this> & that"]


def test_nodes_of_unknown_types_and_other_connections_are_drawn() -> None:
    """What cannot run can be looked at: its ports are numbered, a model is connected by its kind."""
    made = flow([node("Agent", "acme.agent"), node("Model", "acme.model"), node("End", "noOp")], "Agent:2 -> End")
    made["connections"]["Model"] = {"ai_languageModel": [[{"node": "Agent", "type": "ai_languageModel", "index": 0}]]}
    lines = picture_of(parse_flow(made)).lines
    assert [(line.label, line.kind) for line in lines] == [
        ("output 3", "main"), ("ai_languageModel", "ai_languageModel"),
    ]  # fmt: skip
    assert "|" in to_mermaid(picture_of(parse_flow(made)))


def test_mermaid_of_an_example() -> None:
    """The text has a line for each node and connection, in their order, and styles for what is used."""
    states = {"Go": ("ran", "2 items"), "If": ("failed", "")}
    assert to_mermaid(picture_of(parse_flow(example()), states)).splitlines()[:10] == [
        "flowchart LR",
        '  n0(["Go<br/>manual<br/>ran, 2 items"]):::ran',
        '  n1["If<br/>if<br/>failed"]:::failed',
        '  n2[["Loop<br/>splitInBatches"]]',
        '  n3["Body<br/>noOp"]',
        '  n4["Merge<br/>merge"]',
        '  n5["Off<br/>noOp"]:::disabled',
        "  n0 --> n1",
        '  n1 -->|"true"| n2',
        '  n1 -->|"false → input 2"| n4',
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_a_drawing(name: str) -> None:
    """Whatever nodes are called, the text keeps to its grammar and the SVG has no element that we did not write."""
    picture = picture_of(parse_flow(flow([node(name, "manual"), node("B", "noOp")], name=name)), {name: ("ran", name)})
    picture = Picture(picture.title, picture.boxes, (Line(name, "B", name), Line("B", name, name, "error")))
    first, *lines = to_mermaid(picture).splitlines()
    assert first == "flowchart LR"
    assert [line for line in lines if not GRAMMAR.fullmatch(line)] == []
    tags = {one.tag.removeprefix(SVG) for one in ElementTree.fromstring(to_svg(picture)).iter()}
    assert tags == {"svg", "title", "style", "defs", "marker", "path", "rect", "g", "text"}


def test_labels_keep_what_means_nothing() -> None:
    """Letters of all scripts and plain signs stay readable; signs of the language are written by their numbers."""
    assert escaped("Édit 节点 (1)") == "Édit 节点 (1)"
    assert escaped("- a_b #1;") == "#45; a#95;b #35;1#59;"
    assert cut("  two\nlines  ", 20) == "two lines"


def test_svg_shows_names_states_and_notes() -> None:
    """Whole names stand in titles, also where the box has no room; both colour schemes are there, scripts are not."""
    long = "A name that is far too long for any box"
    made = example()
    made["nodes"].append(node(long, "noOp", position=[900, 900]))
    for number, one in enumerate(made["nodes"][:-1]):
        one["position"] = [220 * number, 0]
    svg = to_svg(picture_of(parse_flow(made), {"Go": ("ran", "2 items")}))
    shown = (f"{SVG}text", f"{SVG}title")
    texts = {"".join(one.itertext()) for one in ElementTree.fromstring(svg).iter() if one.tag in shown}
    assert {"Go", "ran, 2 items", "Read <this> & that", f"{long} (noOp)", "A name that is far too…"} <= texts
    assert "prefers-color-scheme: dark" in svg
    assert "<script" not in svg


def test_positions_of_the_canvas_are_kept() -> None:
    """Boxes stand as on the canvas, drawn larger where they would lie on each other."""
    assert place_boxes(["a", "b"], [], {"a": (100, 50), "b": (500, 250)}) == {"a": (0, 0), "b": (400, 200)}
    near = place_boxes(["a", "b"], [], {"a": (0, 0), "b": (100, 10)})
    assert near["b"][0] == 10 * near["b"][1] > WIDTH


LAYOUTS = [
    ("abcd", ["ab", "bc", "cd"], {}),
    ("abcd", ["ab", "ac", "bd", "cd"], {"a": (0.0, 0.0)}),
    ("abcd", ["ab", "bc", "cb", "cd", "dd"], {}),
    ("abcdef", [], dict.fromkeys("abcdef", (0.0, 0.0))),
    ("abc", ["ab", "bc", "ca"], {}),
    ("", [], {}),
]


@pytest.mark.parametrize(("names", "links", "positions"), LAYOUTS)
def test_boxes_do_not_lie_on_each_other(names: str, links: list[str], positions: dict[str, Any]) -> None:
    """Without positions of their own boxes are set in layers, loops and lone nodes too."""
    places = place_boxes(list(names), [(link[0], link[1]) for link in links], positions)
    assert places.keys() == set(names)
    for one, other in combinations(places.values(), 2):
        assert abs(one[0] - other[0]) >= WIDTH or abs(one[1] - other[1]) >= HEIGHT


def test_places_on_no_canvas_are_none() -> None:
    """A flow with an infinite position is set in layers."""
    made = flow([node("A", "manual", position=[float("inf"), 0]), node("B", "noOp", position=[0, 1e300])], "A -> B")
    svg = to_svg(picture_of(parse_flow(made)))
    assert [one.get("x") for one in boxes_of(svg)] == ["0", f"{WIDTH + 72:g}"]


def test_layers_go_from_left_to_right() -> None:
    """A node stands behind all that lead to it, but for what leads back."""
    places = place_boxes(list("abcd"), [("a", "b"), ("b", "c"), ("a", "c"), ("c", "b"), ("c", "d")], {})
    assert places["a"][0] < places["b"][0] < places["c"][0] < places["d"][0]


def test_large_flows_are_drawn_in_no_time() -> None:
    """A chain of thousands of nodes needs no recursion."""
    names = [f"n{number}" for number in range(3_000)]
    places = place_boxes(names, list(pairwise(names)), {})
    assert max(x for x, _ in places.values()) > 2_999 * WIDTH
    boxes = tuple(Box(name, "noOp", position=(number * 300.0, 0.0)) for number, name in enumerate(names[:700]))
    assert len(boxes_of(to_svg(Picture("Long", boxes, ())))) == 700
