"""Conditions of the first versions of if, filter and switch."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.nodes import comparisons

FIRST = [
    ("string", "equal", "a", "a", True), ("string", "equal", "1", 1, False), ("string", "notEqual", "1", 1, True),
    ("string", "contains", "seaside", "side", True), ("string", "contains", None, "a", False),
    ("string", "contains", 1234, 23, True), ("string", "notContains", "sea", "hill", True),
    ("string", "startsWith", "seaside", "sea", True), ("string", "notStartsWith", "seaside", "side", True),
    ("string", "endsWith", "seaside", "sea", False), ("string", "notEndsWith", "seaside", "sea", True),
    ("string", "isEmpty", "", None, True), ("string", "isEmpty", None, None, True),
    ("string", "isEmpty", {}, None, True),
    ("string", "isEmpty", 0, None, False), ("string", "isNotEmpty", [1], None, True),
    ("number", "equal", 1, 1.0, True), ("number", "equal", True, 1, False), ("number", "notEqual", 1, 2, True),
    ("number", "smaller", 1, 2, True), ("number", "smaller", None, 1, True), ("number", "smaller", "9", 10, True),
    ("number", "smaller", "9", "10", False), ("number", "smaller", "10", "9", True),
    ("number", "smallerEqual", 2, 2, True), ("number", "larger", 3, 2, True),
    ("number", "larger", "many", 2, False), ("number", "largerEqual", 1, 2, False),
    ("number", "isEmpty", 0, None, False),
    ("number", "isNotEmpty", 0, None, True),
    ("boolean", "equal", True, True, True), ("boolean", "equal", "true", True, False),
    ("boolean", "notEqual", False, True, True),
    ("dateTime", "after", "2026-02-01", "2026-01-01", True), ("dateTime", "before", "2026-02-01", 0, False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "operation", "left", "right", "expected"), FIRST)
def test_each_operation_of_the_first_version(kind: str, operation: str, left: Any, right: Any, expected: bool) -> None:
    """Values are compared as they are, as JavaScript does."""
    found = {kind: [{"value1": left, "operation": operation, "value2": right}]}
    assert comparisons.holds(found, UTC, any_of=False, field="conditions") is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"string": [{"value1": ""}]}, True),
        ({"number": [{"value1": -1}]}, True),
        ({"boolean": [{}]}, True),
        ({"dateTime": [{"value1": "2026-02-01", "value2": "2026-01-01"}]}, True),
        ({}, True),
    ],
)
def test_what_is_not_written_is_what_the_editor_leaves_out(found: dict[str, Any], expected: bool) -> None:
    """Flows do not carry the operation and the values that are the usual ones."""
    assert comparisons.holds(found, UTC, any_of=False, field="conditions") is expected


def test_any_and_all_over_several_types() -> None:
    """The conditions of all types are combined."""
    found = {"string": [{"value1": "a", "value2": "b"}], "number": [{"value1": 1, "value2": 2}]}
    assert comparisons.holds(found, UTC, any_of=True, field="conditions")
    assert not comparisons.holds(found, UTC, any_of=False, field="conditions")


@pytest.mark.parametrize(
    ("found", "parameter", "message"),
    [
        ({"text": []}, "conditions.text", "string"),
        ({"string": {}}, "conditions.string", "list"),
        ({"string": ["a"]}, "conditions.string[0]", "object"),
        ({"string": [{"operation": "notRegex"}]}, "conditions.string[0].operation", "use contains"),
        ({"number": [{"operation": "gt"}]}, "conditions.number[0].operation", "larger"),
        ({"number": [{"operation": "={{ 1 }}"}]}, "conditions.number[0].operation", "written out"),
        ("={{ 1 }}", "conditions", "written out"),
    ],
)
def test_faults_of_the_first_version(found: Any, parameter: str, message: str) -> None:
    """Each fault names its parameter and what to write instead."""
    faults = comparisons.check(found, "conditions")
    assert [fault.parameter for fault in faults] == [parameter]
    assert message in faults[0].message


def test_a_value_that_is_no_date_is_refused() -> None:
    """The error names the value and how dates are written."""
    with pytest.raises(InvalidInputError, match=r"conditions\.dateTime\[0\]\.value2 must be a date, such as"):
        comparisons.holds({"dateTime": [{"value1": 5, "value2": "soon"}]}, UTC, any_of=False, field="conditions")


@pytest.mark.parametrize("found", [{"text": []}, {"string": [{"operation": "like"}]}])
def test_faults_are_errors_where_it_runs_all_the_same(found: dict[str, Any]) -> None:
    """No condition is passed over."""
    with pytest.raises(InvalidInputError, match="must be one of"):
        comparisons.holds(found, UTC, any_of=False, field="conditions")
    with pytest.raises(InvalidInputError, match=r"rules\[0\]\.operation must be one of"):
        comparisons.compare("number", 1, {"operation": "like"}, UTC, field="rules[0]")
