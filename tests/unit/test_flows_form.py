"""Flows are read with every field that nobody knows, and refused with the path of what is wrong."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.flows.form import Policy, parse_flow
from headrace.apps.flows.reading import FlowError, parse_json, read_json
from tests.unit.flow_making import flow, node, problems_of

STRANGE = {
    "id": 17, "name": "Strange", "meta": {"instanceId": "x"}, "tags": [{"name": "a"}],
    "pinData": {"Go": [{"json": {}}]}, "staticData": None, "versionId": "v", "active": False,
    "settings": {"executionOrder": "v1", "new": [1]},
    "nodes": [
        {"id": "1", "name": "Go", "type": "headrace.manual", "typeVersion": 1, "position": [-10, 20.5], "notes": "hm",
         "webhookId": "w", "parameters": {"odd": {"deep": [None, 1.5, "={{ $json }}"]}}, "notesInFlow": True},
        {"id": "2", "name": "End", "type": "headrace.noOp", "parameters": {}, "colour": 3,
         "onError": "continueErrorOutput"},
    ],
    "connections": {
        "Go": {"main": [[{"node": "End", "type": "main", "index": 0, "extra": True}], None], "ai_tool": []}
    },
    "shared": [{"role": "owner"}],
}  # fmt: skip


def test_what_is_not_known_is_kept() -> None:
    """A flow gives back what it was read from, and what is changed in that changes nothing in it."""
    read = parse_flow(copy.deepcopy(STRANGE))
    assert read.document() == STRANGE
    read.document()["nodes"].clear()
    assert read.document() == STRANGE
    assert (read.id, read.nodes["End"].policy, read.nodes["Go"].position) == ("17", Policy.OUTPUT, (-10, 20.5))


@pytest.mark.parametrize(
    ("written", "tries", "wait"),
    [
        ({}, None, 1.0),
        ({"retryOnFail": True}, 3, 1.0),
        ({"retryOnFail": True, "maxTries": 1, "waitBetweenTries": -4}, 2, 0.0),
        ({"retryOnFail": True, "maxTries": 99, "waitBetweenTries": 60_000}, 5, 5.0),
        ({"retryOnFail": False, "maxTries": 4}, None, 1.0),
    ],
)
def test_tries_are_kept_within_their_bounds(written: dict[str, Any], tries: int | None, wait: float) -> None:
    """2 to 5 tries with at most 5 s between them, as everybody who draws flows knows them."""
    read = parse_flow(flow([node("Go", "manual", **written)])).nodes["Go"]
    assert (read.tries, read.wait.total_seconds()) == (tries, wait)


def test_an_older_word_for_going_on_is_known() -> None:
    """`continueOnFail` is what `onError` was before."""
    read = parse_flow(flow([node("A", "manual", continueOnFail=True), node("B", "noOp")]))
    assert [one.policy for one in read.nodes.values()] == [Policy.CONTINUE, Policy.STOP]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nodes": {}}, "flow.nodes"),
        ({"nodes": [1]}, r"flow\.nodes\[0\]"),
        ({"nodes": [{"type": "x"}]}, r"flow\.nodes\[0\]\.name"),
        ({"nodes": [{"name": "A"}]}, r"flow\.nodes\[0\]\.type"),
        ({"nodes": [node("A", "manual"), node("A", "manual")]}, r"flow\.nodes\[1\]\.name"),
        ({"nodes": [node("A", "manual") | {"typeVersion": "1"}]}, r"flow\.nodes\[0\]\.typeVersion"),
        ({"nodes": [node("A", "manual", onError="explode")]}, r"flow\.nodes\[0\]\.onError"),
        ({"nodes": [node("A", "manual", maxTries="3")]}, r"flow\.nodes\[0\]\.maxTries"),
        ({"connections": [1]}, r"flow\.connections"),
        ({"connections": {"Go": {"main": [[{"index": "x", "node": "End"}]]}}}, r"main\[0\]\[0\]\.index"),
        ({"connections": {"Go": {"main": [[{"index": 1e308, "node": "End"}]]}}}, r"main\[0\]\[0\]\.index"),
        ({"connections": {"Go": {"main": [[{"index": -1, "node": "End"}]]}}}, r"main\[0\]\[0\]\.index"),
        ({"connections": {"Go": {"main": [[]] * 70 + [[{"node": "End"}]]}}}, r"main\[70\]\[0\]"),
        ({"name": ""}, r"flow\.name"),
        ({"settings": 3}, r"flow\.settings"),
        ({"active": "no"}, r"flow\.active"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(change: dict[str, Any], field: str) -> None:
    """Field, rule and value."""
    with pytest.raises(FlowError, match=field):
        parse_flow(STRANGE | change)


def test_connections_come_in_the_order_of_their_nodes() -> None:
    """A store may sort the members of objects: that must not change the order in which items are put together."""
    made = flow([node("B", "manual"), node("A", "manual"), node("C", "noOp")], "A -> C", "B -> C")
    assert [link.source for link in parse_flow(made).connections] == ["B", "A"]


def test_a_connection_to_no_node_is_told_and_one_from_none_has_no_effect() -> None:
    """The first would lose items, the second is what is left of a node that was deleted."""
    made = flow([node("Go", "manual")], "Go -> Gone", "Ghost -> Go")
    (problem,) = problems_of(made)
    assert "flow.connections.Go.main[0][0].node: leads to 'Gone'" in problem


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1,}', "line 1, column"),
        ("[" * 100_000, "nested"),
        ("", "line 1"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, says: str) -> None:
    """Never a traceback, and nothing is taken for something else."""
    with pytest.raises(FlowError, match=says):
        parse_json(text, "offers.json")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A missing file, a folder, and bytes that are no text."""
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.json", "bytes.json", "."):
        with pytest.raises(FlowError, match=str(tmp_path)):
            read_json(tmp_path / name)
