"""Templates: what they are filled with, what they refer to, and what a node without any is given."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.graph.bindings import Scope, arguments, fill, given, references, text_parts
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import Edge, Graph, TaskNode

RUN = {"id": "0190", "workflow": "papers", "user_id": "u1", "correlation_id": None, "metadata": {"tags": ["x"]},
       "input": {"folder": "in"}}  # fmt: skip
SCOPE = Scope({"urls": ["u0", "u1"]}, 3, RUN, {"fetch": {"pages": [{"n": 7}]}, "none": None})


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ({"$node": "fetch"}, {"pages": [{"n": 7}]}),
        ({"$node": "fetch", "path": ["pages", 0, "n"]}, 7),
        ({"$node": "fetch", "path": ["pages", 1, "n"]}, None),
        ({"$node": "later"}, None),
        ({"$node": "none", "path": ["x"]}, None),
        ({"$input": []}, {"urls": ["u0", "u1"]}),
        ({"$input": ["urls", -1]}, "u1"),
        ({"$input": ["urls", "0"]}, "u0"),
        ({"$input": ["other", "x"]}, None),
        ({"$index": True}, 3),
        ({"$run": ["metadata", "tags", 0]}, "x"),
        ({"$run": ["input", "folder"]}, "in"),
        ({"$run": ["secret"]}, None),
        ({"$literal": {"$node": "fetch"}}, {"$node": "fetch"}),
        ([{"$index": True}, {"a": [{"$input": ["urls", 0]}], "b": "$input"}], [3, {"a": ["u0"], "b": "$input"}]),
        ({"$first": [{"$node": "later"}, {"$node": "none"}, {"$index": True}, 9]}, 3),
        ({"$first": [None, {"$first": []}, False]}, False), ({"$first": []}, None),
        ({"$text": ["approve-", {"$index": True}, {"$node": "none"}, ["é", None]]}, 'approve-3["é", null]'),
        ({"$ref": "#/$defs/page"}, {"$ref": "#/$defs/page"}),
        ("text", "text"), (None, None), (1.5, 1.5), ([], []), ({}, {}),
    ],
)  # fmt: skip
def test_a_template_is_filled(template: Any, value: Any) -> None:
    """Each marker stands for its value, wherever it stands; what is not there is null; all else is data."""
    assert fill(template, SCOPE) == value


@pytest.mark.parametrize(
    "data",
    [{"$node": 7}, {"$node": "fetch", "more": 1}, {"$input": "urls"}, {"$input": [1.5]}, {"$index": False},
     {"$index": 1}, {"$first": {}}, {"$text": "x"}, {"$node": "fetch", "$input": []}, {"$run": None}],
)  # fmt: skip
def test_what_only_resembles_a_marker_is_data(data: Any) -> None:
    """Data that was not checked is passed on as it is; it refers to nothing."""
    assert fill(data, SCOPE) == data
    assert references(data) == frozenset()


def test_references_are_found_wherever_they_stand() -> None:
    """In arrays and objects, once each, and not in literals."""
    template = [{"$first": [1, {"$text": ["x", {"$node": "d"}]}]}, {"$node": "a"},
                {"x": {"$node": "b", "path": ["$node"]}, "y": [{"$node": "a"}]},
                {"$input": []}, {"$literal": {"$node": "c"}}]  # fmt: skip
    assert references(template) == {"a", "b", "d"}


def test_the_parts_of_a_text_are_those_of_texts_within_it_too() -> None:
    """So that each can be looked at alone; any other template is one part, as is what only resembles a text."""
    first = {"$first": [{"$text": ["x"]}, {"$index": True}]}
    assert text_parts({"$text": ["a", {"$text": [{"$input": []}, first]}, None]}) == ["a", {"$input": []}, first, None]
    assert text_parts({"$run": ["id"]}) == [{"$run": ["id"]}]
    assert text_parts({"$text": "x"}) == [{"$text": "x"}]


def layout(*edges: tuple[str, str]) -> Layout:
    """Return the layout of a graph of tasks with these edges."""
    names = dict.fromkeys(name for edge in edges for name in edge)
    return Layout(Graph(tuple(TaskNode(name, "t") for name in names), tuple(Edge(*edge) for edge in edges)))


def test_a_node_without_arguments_is_given_what_came_before() -> None:
    """A root the input; behind one node its output; behind several one list, in the order of the edges."""
    graph = layout(("b", "join"), ("a", "join"), ("b", "join"), ("c", "join"), ("a", "next"))
    scope = Scope({"in": 1}, None, {}, {"a": 1, "b": {"x": 2}})
    assert given(graph, "a", scope) == [{"in": 1}]
    assert given(graph, "next", scope) == [1]
    assert given(graph, "join", scope) == [[{"x": 2}, 1, None]]


def test_a_root_is_given_nothing_when_the_input_is_null() -> None:
    """So that tasks without parameters can start a workflow; false and 0 are inputs."""
    graph = layout(("a", "b"))
    assert given(graph, "a", Scope(None, None, {}, {})) == []
    assert given(graph, "a", Scope(0, None, {}, {})) == [0]
    assert given(graph, "b", Scope(None, None, {}, {})) == [None]


def test_arguments_are_those_of_the_node_or_else_what_came_before() -> None:
    """Arguments of its own, be there none, are all that a node is given."""
    graph, scope = layout(("a", "b")), Scope("in", 1, {}, {"a": "out"})
    assert arguments(graph, TaskNode("b", "t"), scope) == (["out"], {})
    assert arguments(graph, TaskNode("b", "t", args=()), scope) == ([], {})
    assert arguments(graph, TaskNode("b", "t", kwargs=(("page", {"$node": "a"}),)), scope) == ([], {"page": "out"})
    node = TaskNode("b", "t", args=({"$input": []}, 7), kwargs=(("index", {"$index": True}),))
    assert arguments(graph, node, scope) == (["in", 7], {"index": 1})
