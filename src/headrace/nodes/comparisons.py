"""Conditions as if, filter and switch had them in their first versions: values by type, compared as JavaScript does."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.values import truthy
from headrace.nodes.base import Fault
from headrace.nodes.checking import is_expression, shown
from headrace.nodes.conversions import number_of, same, text_of
from headrace.nodes.moments import moment_of
from headrace.nodes.operations import NO_REGEX, Test

#: The types in the order in which they are looked at, each with its operation and value where none is written.
_DEFAULTS: dict[str, tuple[str, Any]] = {
    "boolean": ("equal", False),
    "dateTime": ("after", ""),
    "number": ("smaller", 0),
    "string": ("equal", ""),
}


def _text(value: Any) -> str:
    return text_of(value) if truthy(value) else ""


def _ordered(compare: Callable[[Any, Any], bool]) -> Test:
    """Return a test of order: two texts by their letters, all else as numbers, nothing counts as 0."""

    def test(left: Any, right: Any) -> bool:
        left, right = left if truthy(left) else 0, right if truthy(right) else 0
        if isinstance(left, str) and isinstance(right, str):
            return compare(left, right)
        first, second = number_of(left), number_of(right)
        return first is not None and second is not None and compare(first, second)

    return test


def _is_empty(left: Any, right: Any) -> bool:
    return left is None or left in ("", [], {})


_EQUALITY: dict[str, Test] = {"equal": same, "notEqual": lambda left, right: not same(left, right)}
_EMPTINESS: dict[str, Test] = {
    "isEmpty": _is_empty,
    "isNotEmpty": lambda left, right: not _is_empty(left, right),
}
_TESTS: dict[str, dict[str, Test]] = {
    "boolean": _EQUALITY,
    "dateTime": {"after": operator.gt, "before": operator.lt},
    "number": {
        **_EQUALITY,
        **_EMPTINESS,
        "smaller": _ordered(operator.lt),
        "smallerEqual": _ordered(operator.le),
        "larger": _ordered(operator.gt),
        "largerEqual": _ordered(operator.ge),
    },
    "string": {
        **_EQUALITY,
        **_EMPTINESS,
        "contains": lambda left, right: _text(right) in _text(left),
        "notContains": lambda left, right: _text(right) not in _text(left),
        "startsWith": lambda left, right: _text(left).startswith(_text(right)),
        "notStartsWith": lambda left, right: not _text(left).startswith(_text(right)),
        "endsWith": lambda left, right: _text(left).endswith(_text(right)),
        "notEndsWith": lambda left, right: not _text(left).endswith(_text(right)),
    },
}
TYPES = tuple(_TESTS)


def usual_value(kind: str) -> Any:
    """Return the value of a type that is meant where none is written.

    >>> usual_value("number")
    0
    """
    return _DEFAULTS[kind][1]


def compare(kind: str, left: Any, rule: Mapping[str, Any], zone: tzinfo, *, field: str) -> bool:
    """Whether a value and the `value2` of a rule fit its `operation`. Raises InvalidInputError for what is no date.

    >>> from datetime import UTC
    >>> compare("number", "10", {"operation": "larger", "value2": 9}, UTC, field="value1")
    True
    """
    wrong = check_rule(kind, rule, field)
    if wrong:
        raise InvalidInputError(wrong[0].parameter, wrong[0].message)
    usual, value = _DEFAULTS[kind]
    right = rule.get("value2", value)
    if kind == "dateTime":
        left, right = _moment(left, f"{field}.value1", zone), _moment(right, f"{field}.value2", zone)
    return _TESTS[kind][rule.get("operation", usual)](left, right)


def holds(conditions: Mapping[str, Any], zone: tzinfo, *, any_of: bool, field: str) -> bool:
    """Whether all or any of some conditions hold, their expressions evaluated already. Raises InvalidInputError.

    >>> from datetime import UTC
    >>> texts = [{"value1": "apple", "operation": "contains", "value2": "pp"}]
    >>> holds({"string": texts}, UTC, any_of=False, field="conditions")
    True
    """
    wrong = check(conditions, field)
    if wrong:
        raise InvalidInputError(wrong[0].parameter, wrong[0].message)
    tests = (
        compare(kind, one.get("value1", usual_value(kind)), one, zone, field=where)
        for kind, one, where in _each(conditions, field)
    )
    return any(tests) if any_of else all(tests)


def check(conditions: Any, path: str) -> list[Fault]:
    """Return what of conditions cannot be done; they may have expressions."""
    if not isinstance(conditions, Mapping):
        return [Fault(path, "must be written out, as lists by type: string, number, boolean, dateTime")]
    faults = [Fault(f"{path}.{kind}", f"must be one of {', '.join(TYPES)}") for kind in conditions if kind not in TYPES]
    for kind in TYPES:
        if not isinstance(conditions.get(kind, []), list):
            return [*faults, Fault(f"{path}.{kind}", "must be a list")]
    for kind, one, where in _each(conditions, path):
        faults += check_rule(kind, one, where)
    return faults


def check_rule(kind: str, rule: Any, path: str) -> list[Fault]:
    """Return what of one comparison cannot be done.

    >>> check_rule("string", {"operation": "regex", "value2": "a+"}, "rules.rules[0]")[0].parameter
    'rules.rules[0].operation'
    """
    if not isinstance(rule, Mapping):
        return [Fault(path, "must be an object with operation and value2")]
    name = rule.get("operation", _DEFAULTS[kind][0])
    if name in ("regex", "notRegex"):
        return [Fault(f"{path}.operation", NO_REGEX)]
    if isinstance(name, str) and name in _TESTS[kind]:
        return []
    how = "must be written out, not computed: " if is_expression(name) else "must be "
    return [Fault(f"{path}.operation", f"{how}one of {', '.join(_TESTS[kind])}, got {shown(name)}")]


def _each(conditions: Mapping[str, Any], field: str) -> Iterator[tuple[str, Any, str]]:
    for kind in TYPES:
        for number, one in enumerate(conditions.get(kind, [])):
            yield kind, one, f"{field}.{kind}[{number}]"


def _moment(value: Any, field: str, zone: tzinfo) -> Any:
    found = moment_of(value, zone)
    if found is None:
        rule = 'must be a date, such as "2026-03-01T09:00:00Z" or milliseconds since 1970'
        raise InvalidInputError(field, rule, value)
    return found
