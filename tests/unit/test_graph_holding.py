"""Conditions on JSON values: each comparison, and that none of them ever raises."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.graph.conditions import Every, Never, Some, Test
from headrace.model.graph.holding import OPS, UNARY_OPS, holds

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab0"), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("op", "found", "value"),
    [
        ("eq", 1, 1.0), ("eq", "a", "a"), ("eq", None, None), ("eq", [1, {"a": [True]}], [1.0, {"a": [True]}]),
        ("ne", True, 1), ("ne", 0, False), ("ne", [True], [1]), ("ne", {"a": 1}, {"b": 1}), ("ne", "1", 1),
        ("lt", 1, 1.5), ("le", 2, 2.0), ("gt", 3, -3), ("ge", 0.5, 0.5), ("lt", "a", "b"), ("ge", "b", "a"),
        ("in", 2, [1, 2.0]), ("in", {"a": 1}, [{"a": 1}]), ("not_in", True, [1]), ("not_in", "a", "abc"),
        ("contains", [1, "x"], "x"), ("contains", "haystack", "st"), ("contains", {"key": None}, "key"),
        ("starts_with", "report.pdf", "rep"), ("ends_with", "report.pdf", ".pdf"),
        ("exists", None, None), ("exists", 0, None),
        ("truthy", "x", None), ("truthy", [0], None), ("truthy", -0.5, None),
        ("falsy", 0, None), ("falsy", "", None), ("falsy", {}, None), ("falsy", None, None), ("falsy", False, None),
        ("empty", "", None), ("empty", [], None), ("empty", {}, None), ("empty", None, None),
    ],
)  # fmt: skip
def test_a_comparison_holds(op: str, found: Any, value: Any) -> None:
    """What the table in `holding` says of each comparison, of a value itself and of one that lies within."""
    assert holds(Test((), op, value), found)
    assert holds(Test(("deep", 1, "er"), op, value), {"deep": [0, {"er": found}]})


@pytest.mark.parametrize(
    ("op", "found", "value"),
    [
        ("eq", True, 1), ("eq", "1", 1), ("eq", [1], [1, 2]), ("eq", {"a": 1}, {"a": 2}), ("eq", [], {}),
        ("lt", True, 2), ("lt", 1, True), ("lt", "1", 2), ("le", None, None), ("ge", [1], [1]), ("gt", {}, {}),
        ("lt", 2, 2), ("gt", "a", "a"), ("in", "a", "abc"), ("in", 1, None), ("in", 1, [True]),
        ("contains", "a1", 1), ("contains", 7, 7), ("contains", None, None), ("contains", {"a": 1}, 1),
        ("starts_with", "abc", "b"), ("starts_with", ["a"], "a"), ("ends_with", "a", None),
        ("missing", None, None), ("truthy", 0.0, None), ("falsy", "0", None), ("empty", 0, None),
        ("empty", False, None), ("like", "a", "a"),
    ],
)  # fmt: skip
def test_a_comparison_does_not_hold(op: str, found: Any, value: Any) -> None:
    """True is no number, types without an order have none, and a comparison that there is not never holds."""
    assert not holds(Test((), op, value), found)


@pytest.mark.parametrize("path", [("b",), ("a", 5), ("a", "x"), ("a", True), ("a", 0, "z"), ("text", 0), (0,), ("9",)])
def test_what_is_missing_equals_nothing(path: tuple[str | int, ...]) -> None:
    """Where a path leads nowhere only the comparisons hold that say so, and the opposites of equality."""
    value = {"a": [1, 2], "text": "abc", "n": None}
    assert {op for op in OPS if holds(Test(path, op, None), value)} == {"ne", "not_in", "missing", "falsy", "empty"}


def test_paths_lead_into_arrays_by_index_and_by_digits() -> None:
    """An index counts from the start or from the end; in a path of texts, digits do; in objects they are keys."""
    value = {"pages": [{"n": 1}, {"n": 2}], "0": "key"}
    for path, found in [
        (("pages", 0, "n"), 1), (("pages", -1, "n"), 2), (("pages", "1", "n"), 2), (("pages", "-2", "n"), 1),
        (("0",), "key"),
    ]:  # fmt: skip
        assert holds(Test(path, "eq", found), value)
    assert holds(Test(("pages", "9" * 5_000), "missing"), value)


def test_conditions_are_joined() -> None:
    """Every, some and never, in one another; of no parts, every holds and some does not."""
    a, b = Test(("a",), "truthy"), Test(("b",), "truthy")
    exactly_one = Every((Some((a, b)), Never(Every((a, b)))))
    for left, right in itertools.product((True, False), repeat=2):
        assert holds(exactly_one, {"a": left, "b": right}) is (left != right)
    assert holds(Every(()), None)
    assert not holds(Some(()), None)


@settings(max_examples=60, deadline=None)
@given(_JSON, _JSON, st.lists(st.sampled_from(["a", "b", "0", 0, -1, 7]), max_size=3))
def test_nothing_raises_and_opposites_are_opposites(value: Any, other: Any, path: list[str | int]) -> None:
    """Any value, compared in any way with any other, gives true or false."""
    held = {op: holds(Test(tuple(path), op, other), value) for op in OPS}
    assert all(type(one) is bool for one in held.values())
    for one, opposite in [("eq", "ne"), ("in", "not_in"), ("exists", "missing"), ("truthy", "falsy")]:
        assert held[one] is not held[opposite]
    assert not (held["lt"] and held["ge"])
    assert OPS.keys() >= UNARY_OPS
