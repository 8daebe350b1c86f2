"""Conditions of if, filter and switch: each operation, conversions, and what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.scope import Scope
from headrace.nodes import conditions
from headrace.nodes.operations import OPERATIONS
from headrace.nodes.parameters import Parameters

STRICT = {"caseSensitive": True, "typeValidation": "strict", "version": 2}
LOOSE = {"caseSensitive": True, "typeValidation": "loose", "version": 2}


def holds(kind: str, operation: str, left: Any, right: Any = None, *, options: dict[str, Any] | None = None) -> bool:
    """Whether one condition holds."""
    one = {"leftValue": left, "rightValue": right, "operator": {"type": kind, "operation": operation}}
    value = {"options": options or STRICT, "conditions": [one], "combinator": "and"}
    return conditions.holds(value, Parameters({}), path="conditions")


TEXTS = [
    ("exists", "", None, True), ("exists", None, None, False), ("notExists", None, None, True),
    ("empty", "", None, True), ("empty", None, None, True), ("empty", " ", None, False),
    ("notEmpty", "x", None, True), ("notEmpty", None, None, False),
    ("equals", "Sea", "Sea", True), ("equals", "Sea", "sea", False), ("equals", None, "", True),
    ("notEquals", "Sea", "sea", True), ("notEquals", "sea", "sea", False),
    ("contains", "seaside", "asi", True), ("contains", "seaside", "", True), ("notContains", "seaside", "hill", True),
    ("startsWith", "seaside", "sea", True), ("notStartsWith", "seaside", "sea", False),
    ("endsWith", "seaside", "side", True), ("notEndsWith", "seaside", "sea", True),
]  # fmt: skip
NUMBERS = [
    ("equals", 4, 4.0, True), ("equals", None, 4, False), ("equals", None, None, True), ("notEquals", None, 4, True),
    ("notEquals", 4, 4, False), ("gt", 5, 4, True), ("gt", 4, 4, False), ("gte", 4, 4, True), ("lt", 3, 4, True),
    ("lt", None, 4, False), ("lte", 4, 4, True), ("lte", 5, 4, False), ("empty", None, None, True),
    ("empty", 0, None, False), ("notEmpty", 0, None, True), ("exists", 0, None, True),
]  # fmt: skip
DATES = [
    ("after", "2026-02-01", "2026-01-31", True), ("before", "2026-02-01", "2026-01-31", False),
    ("equals", "2026-02-01T01:00:00+01:00", "2026-02-01T00:00:00Z", True),
    ("notEquals", "2026-02-01", "2026-02-02", True),
    ("afterOrEquals", "2026-02-01", "2026-02-01", True), ("beforeOrEquals", "2026-02-02", "2026-02-01", False),
    ("after", "2026-02-01", None, False), ("notEquals", None, "2026-02-01", False), ("empty", None, None, True),
    ("notEmpty", "2026-02-01", None, True),
    ("before", 0, "1970-01-02", True), ("equals", "Sun, 01 Feb 2026 00:00:00 GMT", "2026-02-01 00:00:00", True),
]  # fmt: skip
TRUTHS = [
    ("true", True, None, True), ("true", False, None, False), ("true", None, None, False),
    ("false", None, None, True), ("false", False, None, True), ("equals", True, True, True),
    ("equals", None, False, False), ("notEquals", True, False, True), ("empty", False, None, False),
    ("notEmpty", False, None, True), ("notExists", None, None, True),
]  # fmt: skip
LISTS = [
    ("contains", ["a", 2], 2, True), ("contains", ["a", 1], True, False), ("contains", [{"a": 1}], {"a": 1}, True),
    ("notContains", ["a"], "b", True), ("notContains", None, "b", True), ("empty", [], None, True),
    ("notEmpty", [0], None, True), ("lengthEquals", [1, 2], 2, True), ("lengthEquals", None, 0, True),
    ("lengthNotEquals", [1], 2, True), ("lengthGt", [1, 2], 1, True), ("lengthLt", [1, 2], 2, False),
    ("lengthGte", [1, 2], 2, True), ("lengthLte", [1, 2], 1, False), ("exists", [], None, True),
]  # fmt: skip
OBJECTS = [
    ("empty", {}, None, True), ("empty", None, None, True), ("empty", {"a": None}, None, False),
    ("notEmpty", {"a": 1}, None, True), ("notEmpty", None, None, False), ("exists", {}, None, True),
    ("notExists", {}, None, False),
]  # fmt: skip
CASES = [
    (kind, *case)
    for kind, cases in (
        *(("string", TEXTS), ("number", NUMBERS), ("dateTime", DATES)),
        *(("boolean", TRUTHS), ("array", LISTS), ("object", OBJECTS)),
        ("any", [("exists", 0, None, True), ("notExists", None, None, True)]),
    )
    for case in cases
]


@pytest.mark.parametrize(("kind", "operation", "left", "right", "expected"), CASES)
def test_each_operation(kind: str, operation: str, left: Any, right: Any, expected: bool) -> None:
    """Every operation of every type gives what it is called."""
    assert holds(kind, operation, left, right) is expected


def test_all_operations_have_a_case() -> None:
    """No operation is left out of the table above."""
    known = {(kind, name) for kind, names in OPERATIONS.items() for name in names}
    exist = {(kind, name) for kind in OPERATIONS for name in ("exists", "notExists")}
    assert known - exist <= {(case[0], case[1]) for case in CASES}


@pytest.mark.parametrize(
    ("kind", "operation", "left", "right", "edition", "expected"),
    [
        ("number", "equals", "12", 12, 1, True),
        ("number", "equals", "", 0, 2, True),
        ("number", "equals", "", 0, 3, False),
        ("number", "empty", " ", None, 3, True),
        ("number", "gt", True, 0, 2, True),
        ("string", "equals", 5.0, "5", 2, True),
        ("string", "contains", {"a": 1}, '"a":1', 2, True),
        ("boolean", "true", "false", None, 1, True),
        ("boolean", "true", "false", None, 2, False),
        ("boolean", "equals", 0, "false", 2, True),
        ("boolean", "true", "anything", None, 2, True),
        ("array", "contains", '["a", "b"]', "b", 2, True),
        ("array", "lengthEquals", "['a']", "1", 2, True),
        ("object", "notEmpty", '{"a": 1}', None, 2, True),
    ],
)
def test_values_are_converted_where_types_are_loose(
    kind: str, operation: str, left: Any, right: Any, edition: int, expected: bool
) -> None:
    """With loose types a value becomes the type that it is compared as, by the rules of its edition."""
    assert holds(kind, operation, left, right, options={**LOOSE, "version": edition}) is expected


@pytest.mark.parametrize(
    ("kind", "operation", "left", "right", "options", "rule"),
    [
        ("number", "equals", "12", 12, STRICT, r"conditions\[0\]\.leftValue is compared as number .*strict.*toNumber"),
        ("number", "equals", 12, "12", STRICT, r"conditions\[0\]\.rightValue is compared as number"),
        ("number", "equals", True, 1, STRICT, "compared as number"),
        ("string", "exists", 5, None, STRICT, "compared as string"),
        ("boolean", "true", "true", None, STRICT, "compared as boolean"),
        ("array", "empty", "[]", None, STRICT, "compared as array"),
        ("object", "empty", [], None, STRICT, "compared as object"),
        ("number", "gt", "twelve", 1, LOOSE, "cannot become one"),
        ("array", "empty", "{}", None, LOOSE, "cannot become one"),
        ("object", "empty", "not json", None, LOOSE, "cannot become one"),
        ("dateTime", "after", "soon", "2026-01-01", LOOSE, "compared as a date"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(
    kind: str, operation: str, left: Any, right: Any, options: dict[str, Any], rule: str
) -> None:
    """A value that does not fit is an error that names it, the rule and what to change."""
    with pytest.raises(InvalidInputError, match=rule):
        holds(kind, operation, left, right, options=options)


@pytest.mark.parametrize(
    ("kind", "operation", "left", "right"),
    [
        ("string", "equals", "Ölpreis", "öLPREIS"),
        ("string", "contains", "Seaside", "SEA"),
        ("array", "contains", ["Sea", 1, None], "sEA"),
    ],
)
def test_case_counts_only_where_it_is_asked_for(kind: str, operation: str, left: Any, right: Any) -> None:
    """Letters of another case are others where `caseSensitive` says so."""
    assert holds(kind, operation, left, right, options={"caseSensitive": False, "typeValidation": "strict"})
    assert not holds(kind, operation, left, right)


def test_elements_that_are_no_texts_keep_what_they_are_without_case() -> None:
    """Null in a list is no empty text."""
    assert not holds("array", "contains", [None], "", options={"caseSensitive": False, "typeValidation": "strict"})


@pytest.mark.parametrize(
    ("combinator", "results", "expected"),
    [
        ("and", (True, True), True),
        ("and", (True, False), False),
        ("or", (False, True), True),
        ("or", (False, False), False),
        ("and", (), True),
        ("or", (), False),
        (None, (True, False), False),
    ],
)
def test_conditions_are_combined(combinator: str | None, results: tuple[bool, ...], expected: bool) -> None:
    """With "and", which is meant where nothing is written, all have to hold, with "or" one."""
    found = [{"leftValue": one, "operator": {"type": "boolean", "operation": "true"}} for one in results]
    value = {"options": STRICT, "conditions": found} | ({"combinator": combinator} if combinator else {})
    assert conditions.holds(value, Parameters({}), path="conditions") is expected


def test_a_date_without_zone_is_in_the_zone_of_the_flow() -> None:
    """The zone is that of `$now`."""
    zone = timezone(timedelta(hours=5))
    at = Parameters({}, Scope(now=datetime(2026, 1, 1, tzinfo=zone)))
    operator = {"type": "dateTime", "operation": "equals"}
    one = {"leftValue": "2026-01-01T05:00:00", "rightValue": "2026-01-01T00:00:00Z", "operator": operator}
    assert conditions.holds({"conditions": [one]}, at, path="conditions")


@pytest.mark.parametrize(
    ("parameters", "left", "expected"),
    [({}, "a", False), ({"options": {"ignoreCase": True}}, "a", True), ({"looseTypeValidation": True}, 5, False)],
)
def test_rules_of_the_node_count_where_conditions_have_none(
    parameters: dict[str, Any], left: Any, expected: bool
) -> None:
    """Conditions without options of their own go by those of the node, strict and case sensitive unless told."""
    one = {"leftValue": left, "rightValue": "A", "operator": {"type": "string", "operation": "equals"}}
    assert conditions.holds({"conditions": [one]}, Parameters(parameters), path="conditions") is expected
    if left == 5:
        with pytest.raises(InvalidInputError, match="strict"):
            conditions.holds({"conditions": [one]}, Parameters({}), path="conditions")


@pytest.mark.parametrize(
    ("value", "parameter", "message"),
    [
        ("={{ $json.rules }}", "conditions", "written out"),
        ({"string": []}, "conditions", 'list "conditions"'),
        ({"conditions": [], "combinator": "xor"}, "conditions.combinator", "xor"),
        ({"conditions": [{"leftValue": 1}]}, "conditions.conditions[0].operator", "must be an object"),
        ({"conditions": ["a"]}, "conditions.conditions[0].operator", "must be an object"),
        ({"conditions": [{"operator": {"type": "text"}}]}, "conditions.conditions[0].operator", "type of any, string"),
        (
            {"conditions": [{"operator": {"type": "number", "operation": "larger"}}]},
            "conditions.conditions[0].operator",
            'gt, gte, lt, lte for number, got "larger"',
        ),
        (
            {"conditions": [{"operator": {"type": "string", "operation": "regex"}}]},
            "conditions.conditions[0].operator",
            "use contains, startsWith, endsWith",
        ),
    ],
)
def test_what_cannot_be_done_is_found_before_it_runs(value: Any, parameter: str, message: str) -> None:
    """Each fault names its parameter and what to write instead, and is an error where it runs all the same."""
    faults = conditions.check(value, "conditions")
    assert [fault.parameter for fault in faults] == [parameter]
    assert message in faults[0].message
    with pytest.raises(InvalidInputError):
        conditions.holds(value, Parameters({}), path="conditions")
