"""Parameters at one item: what counts as a text, as a whole number and as a number."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.nodes import checking
from headrace.nodes.parameters import Parameters


@pytest.mark.parametrize(("value", "expected"), [(7, 7), ("7", 7), (" -7 ", -7), (7.0, 7), ("0" * 11 + "7", 7)])
def test_whole_numbers(value: Any, expected: int) -> None:
    """Texts of digits and numbers without a fraction are some, when they run and when they are checked."""
    assert Parameters({"n": value}).whole("n", 0, least=-9) == expected
    assert checking.whole({"n": value}, "n", least=-9) == []


@pytest.mark.parametrize(
    "value", ["--1", "-", "²", "٣", "1_0", "1" * 13, "", "7.0", True, None, [7], 7.5, 10**400, float("inf")]
)
def test_what_is_no_whole_number(value: Any) -> None:
    """It is refused with the bounds, whatever int() would make of it."""
    with pytest.raises(InvalidInputError, match="n must be a whole number from 0 to 2147483647"):
        Parameters({"n": value}).whole("n", 0)
    assert value is None or len(checking.whole({"n": value}, "n", least=0)) == 1


@pytest.mark.parametrize(("value", "expected"), [(2, 2.0), ("2.5", 2.5), (" -1e3 ", -1000.0)])
def test_numbers(value: Any, expected: float) -> None:
    """Texts that are a number count."""
    assert Parameters({"n": value}).number("n", 0) == expected


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "1_0", "٣", "", True, None, [], 10**400, float("nan")])
def test_what_is_no_number(value: Any) -> None:
    """Numbers without end, and what float() alone would take for one, are refused."""
    with pytest.raises(InvalidInputError, match="n must be a number"):
        Parameters({"n": value}).number("n", 0)


@pytest.mark.parametrize(
    ("value", "expected"), [(3.0, "3"), (0.1, "0.1"), (True, "true"), ("a", "a"), (1e21, "1e+21"), (None, "usual")]
)
def test_texts(value: Any, expected: str) -> None:
    """Numbers are written as JavaScript does."""
    assert Parameters({"t": value}).text("t", "usual") == expected


def test_objects() -> None:
    """A list of anything else is refused."""
    assert Parameters({"rows": [{"a": 1}]}).objects("rows") == [{"a": 1}]
    assert Parameters({}).objects("rows") == []
    with pytest.raises(InvalidInputError, match="rows must be a list of objects"):
        Parameters({"rows": [{}, "a"]}).objects("rows")


def test_any_value_can_be_shown() -> None:
    """Messages are short, and nothing is too deep or too long for one."""
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    assert checking.shown(deep) == "a value of type list"
    assert checking.shown(10**5_000) == "a value of type int"
    assert len(checking.shown("a" * 5_000)) == 80
