"""What conditions can ask of two values that have the right types already, by the type that they are compared as."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.nodes.checking import shown
from headrace.nodes.conversions import same

#: Whether a condition holds for its left and its right value.
Test = Callable[[Any, Any], bool]
NO_REGEX = (
    "regular expressions are not supported, a text can make one run for hours: use contains, startsWith, endsWith"
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One that has a right value, of a type, or none at all."""

    test: Test
    #: The type of the right value; empty: there is none.
    right: str = ""


def _not(test: Test) -> Test:
    return lambda left, right: not test(left, right)


def _exists(left: Any, right: Any) -> bool:
    return left is not None


def _with_right(kind: str, **tests: Test) -> dict[str, Operation]:
    return {name: Operation(test, kind) for name, test in tests.items()}


def _alone(**tests: Test) -> dict[str, Operation]:
    return {name: Operation(test) for name, test in tests.items()}


def _known(test: Test) -> Test:
    """Return a test that no missing value passes."""
    return lambda left, right: left is not None and right is not None and test(left, right)


def _length(test: Test) -> Test:
    return lambda left, right: right is not None and test(len(left or ()), right)


def _has_element(left: Any, right: Any) -> bool:
    return any(same(one, right) for one in left or ())


def _is_empty(left: Any, right: Any) -> bool:
    return not left


_ANY = _alone(exists=_exists, notExists=_not(_exists))
_MISSING = _alone(empty=_not(_exists), notEmpty=_exists)
_HOLLOW = _alone(empty=_is_empty, notEmpty=_not(_is_empty))

#: Operations by the type of the left value. Texts are never null here, but empty.
OPERATIONS: dict[str, dict[str, Operation]] = {
    "any": _ANY,
    "string": {
        **_ANY,
        **_HOLLOW,
        **_with_right(
            "string",
            equals=operator.eq,
            notEquals=operator.ne,
            contains=lambda left, right: right in left,
            notContains=lambda left, right: right not in left,
            startsWith=lambda left, right: left.startswith(right),
            notStartsWith=lambda left, right: not left.startswith(right),
            endsWith=lambda left, right: left.endswith(right),
            notEndsWith=lambda left, right: not left.endswith(right),
        ),
    },
    "number": {
        **_ANY,
        **_MISSING,
        **_with_right(
            "number",
            equals=operator.eq,
            notEquals=operator.ne,
            gt=_known(operator.gt),
            gte=_known(operator.ge),
            lt=_known(operator.lt),
            lte=_known(operator.le),
        ),
    },
    "dateTime": {
        **_ANY,
        **_MISSING,
        **_with_right(
            "dateTime",
            equals=_known(operator.eq),
            notEquals=_known(operator.ne),
            after=_known(operator.gt),
            afterOrEquals=_known(operator.ge),
            before=_known(operator.lt),
            beforeOrEquals=_known(operator.le),
        ),
    },
    "boolean": {
        **_ANY,
        **_MISSING,
        **_alone(true=lambda left, right: bool(left), false=lambda left, right: not left),
        **_with_right("boolean", equals=operator.eq, notEquals=operator.ne),
    },
    "array": {
        **_ANY,
        **_HOLLOW,
        **_with_right("any", contains=_has_element, notContains=_not(_has_element)),
        **_with_right(
            "number",
            lengthEquals=_length(operator.eq),
            lengthNotEquals=_length(operator.ne),
            lengthGt=_length(operator.gt),
            lengthGte=_length(operator.ge),
            lengthLt=_length(operator.lt),
            lengthLte=_length(operator.le),
        ),
    },
    "object": {**_ANY, **_HOLLOW},
}


def fault_of(kind: object, name: object) -> str | None:
    """Return why there is no such operation; None: there is.

    >>> fault_of("number", "larger")
    'must be one of exists, notExists, empty, notEmpty, equals, notEquals, gt, gte, lt, lte for number, got "larger"'
    """
    if not isinstance(kind, str) or kind not in OPERATIONS:
        return f"must have a type of {', '.join(OPERATIONS)}, got {shown(kind)}"
    if name in ("regex", "notRegex") and kind == "string":
        return NO_REGEX
    if not isinstance(name, str) or name not in OPERATIONS[kind]:
        told = f'"{name}"' if isinstance(name, str) else shown(name)
        return f"must be one of {', '.join(OPERATIONS[kind])} for {kind}, got {told}"
    return None
