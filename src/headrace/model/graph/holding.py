"""Whether a condition holds for a JSON value. Never an exception: what cannot be compared does not hold.

| op | holds when what lies at the path |
|---|---|
| eq, ne | equals `value`, or does not; 1 equals 1.0, true equals no number |
| lt, le, gt, ge | comes before or after `value`: two numbers, or two texts by characters; nothing else has an order |
| in, not_in | is one of the array `value`, or is not |
| contains | is an array with `value` in it, a text with the text `value`, or an object with the key `value` |
| starts_with, ends_with | is a text that does so with the text `value` |
| exists, missing | is there, null included, or is not |
| truthy, falsy | is neither null, false, 0, "", [] nor {}, or is one of these or missing |
| empty | is null, "", [], {} or missing |

What is missing equals nothing, so that `ne` and `not_in` hold for it; they are the exact opposites of `eq` and `in`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from headrace.model.graph.conditions import Condition, Every, Never, Some, Test
from headrace.model.graph.lookup import MISSING, look_up


def holds(condition: Condition, value: Any) -> bool:
    """Whether a condition holds for a JSON value. `Every` of no parts holds, `Some` of none does not.

    >>> holds(Test(("score",), "ge", 0.5), {"score": 0.7})
    True
    """
    match condition:
        case Every():
            return all(holds(part, value) for part in condition.parts)
        case Some():
            return any(holds(part, value) for part in condition.parts)
        case Never():
            return not holds(condition.part, value)
        case Test():
            compare = OPS.get(condition.op)
            return compare is not None and compare(look_up(value, condition.path), condition.value)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true and 1 are not.

    >>> same([1, {"a": 2}], [1.0, {"a": 2.0}]), same(1, True)
    (True, False)
    """
    todo = [(one, other)]
    for left, right in todo:  # which grows
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            todo.extend((member, right[key]) for key, member in left.items())
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            if len(left) != len(right):
                return False
            todo.extend(zip(left, right, strict=True))
        elif isinstance(left, bool) != isinstance(right, bool) or left != right:
            return False
    return True


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(found: Any, value: Any) -> bool:
        numbers = _is_number(found) and _is_number(value)
        return (numbers or (isinstance(found, str) and isinstance(value, str))) and compare(found, value)

    return test


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_in(found: Any, value: Any) -> bool:
    return isinstance(value, list | tuple) and any(same(found, one) for one in value)


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str | dict):
        return isinstance(value, str) and value in found
    return _is_in(value, found)


def _starts_with(found: Any, value: Any) -> bool:
    return isinstance(found, str) and isinstance(value, str) and found.startswith(value)


def _ends_with(found: Any, value: Any) -> bool:
    return isinstance(found, str) and isinstance(value, str) and found.endswith(value)


def _truthy(found: Any) -> bool:
    return found is not MISSING and bool(found)


def _empty(found: Any) -> bool:
    return found is MISSING or found is None or (isinstance(found, str | list | tuple | dict) and not found)


#: Every op, by its name: of what lies at the path, or `MISSING`, and of the value of the test.
OPS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": same,
    "ne": lambda found, value: not same(found, value),
    "lt": _ordered(operator.lt),
    "le": _ordered(operator.le),
    "gt": _ordered(operator.gt),
    "ge": _ordered(operator.ge),
    "in": _is_in,
    "not_in": lambda found, value: not _is_in(found, value),
    "contains": _contains,
    "starts_with": _starts_with,
    "ends_with": _ends_with,
    "exists": lambda found, _: found is not MISSING,
    "missing": lambda found, _: found is MISSING,
    "truthy": lambda found, _: _truthy(found),
    "falsy": lambda found, _: not _truthy(found),
    "empty": lambda found, _: _empty(found),
}
#: Those that compare with nothing.
UNARY_OPS = frozenset({"exists", "missing", "truthy", "falsy", "empty"})
