"""Fields of items by their path."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.nodes import fields


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("a[0][1].b", ("a", "0", "1", "b")),
        ("a['b.c'].d", ("a", "b.c", "d")),
        ('["x y"]', ("x y",)),
        ("", ("",)),
        ("..", ("..",)),
    ],
)
def test_steps_of_a_path(path: str, steps: tuple[str, ...]) -> None:
    """Dots and brackets separate steps; quotes keep them together."""
    assert fields.steps_of(path) == steps


@pytest.mark.parametrize(
    ("data", "path", "value", "expected"),
    [
        ({"a": 1}, "a.b", 2, {"a": {"b": 2}}),
        ({"a": [1, 2]}, "a[1]", 3, {"a": [1, 3]}),
        ({"a": [1]}, "a[3]", 4, {"a": [1, None, None, 4]}),
        ({}, "a.0.b", 1, {"a": [{"b": 1}]}),
        ({"a.b": 1}, "a.b", 2, {"a.b": 2}),
        ({"a": None}, "a.b", 1, {"a": {"b": 1}}),
        ({"a": {"0": 1}}, "a[0]", 2, {"a": {"0": 2}}),
    ],
)
def test_put_makes_what_is_missing(data: dict[str, Any], path: str, value: Any, expected: dict[str, Any]) -> None:
    """Lists grow, other values give way, and the data itself is not changed."""
    before = repr(data)
    assert fields.put(data, path, value) == expected
    assert fields.get(fields.put(data, path, value), path) == value
    assert repr(data) == before


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({"a": [1]}, "a.b", "leads into a list of 1 elements"),
        ({"a": []}, "a[100000]", "at most 1000 behind the end"),
        ({}, "a" * 1_001, "at most 1000 characters"),
    ],
)
def test_paths_that_lead_nowhere(data: dict[str, Any], path: str, message: str) -> None:
    """A list has numbers alone, and grows within bounds."""
    with pytest.raises(InvalidInputError, match=message):
        fields.put(data, path, 1)


@pytest.mark.parametrize(
    ("data", "path", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, "a.b", {"a": {"c": 2}}),
        ({"a": [{"b": 1}]}, "a[0].b", {"a": [{}]}),
        ({"a": [1, 2]}, "a[0]", {"a": [None, 2]}),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", {"a": {"b": 2}}),
        ({"a": 1}, "a.b", {"a": 1}),
        ({"a": [1]}, "a[5]", {"a": [1]}),
    ],
)
def test_drop_takes_away(data: dict[str, Any], path: str, expected: dict[str, Any]) -> None:
    """The data itself is not changed."""
    before = repr(data)
    assert fields.drop(data, path) == expected
    assert repr(data) == before


def test_plain_names_of_the_editor() -> None:
    """Without dot notation a name may stand in brackets and quotes."""
    assert fields.get({"a.b": 1}, "['a.b']", dots=False) == 1
    assert fields.put({}, '["a.b"]', 1, dots=False) == {"a.b": 1}
    assert fields.drop({"a.b": 1, "c": 2}, "['a.b']", dots=False) == {"c": 2}
    assert not fields.has({"a": {"b": 1}}, "a.b", dots=False)
