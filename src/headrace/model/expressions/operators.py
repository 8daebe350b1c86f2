"""The operators: arithmetic, comparison and equality of plain values, as in JavaScript where that helps."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from headrace.model.expressions.budget import MAX_DEPTH, Run
from headrace.model.expressions.clock import zone_of
from headrace.model.expressions.errors import Fault, LimitFault
from headrace.model.expressions.moments import Moment, moment_or_none
from headrace.model.expressions.searching import check_comparison, check_equality, check_size
from headrace.model.expressions.values import described, kind, number, number_or_none, to_number, width
from headrace.model.expressions.writing import to_text


def add(run: Run, left: Any, right: Any) -> Any:
    """Add numbers; with a text on either side, join texts."""
    if type(left) is str or type(right) is str:
        first, second = to_text(run, left), to_text(run, right)
        run.charge(80 + (len(first) + len(second)) * width(first, second))
        return first + second
    for side in (left, right):
        if type(side) is list or type(side) is dict:
            raise Fault(f"+ adds numbers and texts, got {kind(side)}: use concat() or merge()")
    return number(_operand("+", left) + _operand("+", right))


def _operand(sign: str, value: Any) -> float:
    found = None if type(value) is Moment else number_or_none(value)
    if found is None:
        hint = {Moment: ": use plus(), minus() or diff()", type(None): ": write `?? 0` where it may be missing"}
        raise Fault(f"{sign} needs numbers, got {described(value)}{hint.get(type(value), '')}")
    return found


def _arithmetic(sign: str, compute: Callable[[float, float], float]) -> Callable[[Run, Any, Any], float]:
    def apply(run: Run, left: Any, right: Any) -> float:
        first, second = _operand(sign, left), _operand(sign, right)
        try:
            return number(compute(first, second))
        except ZeroDivisionError:
            raise Fault(f"{sign} by zero") from None
        except (OverflowError, ValueError):
            raise Fault(f"the result of {sign} is too large, or is no number") from None

    return apply


def _remainder(left: float, right: float) -> float:
    if right == 0:
        raise ZeroDivisionError
    return math.fmod(left, right)


def same(run: Run, left: Any, right: Any, depth: int = 0) -> bool:
    """Whether two values are of one kind and equal, lists and objects by what is in them (`===`)."""
    if depth > MAX_DEPTH:
        raise LimitFault(f"the values that are compared are nested more than {MAX_DEPTH} levels deep")
    if type(left) is list and type(right) is list:
        pairs = run.each(zip(left, right, strict=False))
        return len(left) == len(right) and all(same(run, *pair, depth + 1) for pair in pairs)
    if type(left) is dict and type(right) is dict:
        keys = run.each(left)
        return len(left) == len(right) and all(
            key in right and same(run, left[key], right[key], depth + 1) for key in keys
        )
    if type(left) is not type(right) and not (type(left) in (int, float) and type(right) in (int, float)):
        return False
    if type(left) is str and len(left) == len(right):
        check_equality(run, left)
    return bool(left == right)


def equal(run: Run, left: Any, right: Any) -> bool:
    """Whether two values are equal where a text may be a number, and a number a truth value (`==`)."""
    if left is None or right is None or kind(left) == kind(right):
        return same(run, left, right)
    sides = {type(left), type(right)}
    if list in sides or dict in sides:
        return False
    if sides == {Moment, str}:
        zone = zone_of(run)
        first, second = moment_or_none(left, zone), moment_or_none(right, zone)
        return first is not None and first == second
    first_number, second_number = number_or_none(left), number_or_none(right)
    return first_number is not None and first_number == second_number


def order(run: Run, sign: str, left: Any, right: Any) -> tuple[Any, Any] | None:
    """Return what two values are compared by; None where one is null: no comparison with it is true. Raises Fault."""
    if left is None or right is None:
        return None
    if type(left) is str and type(right) is str:
        check_comparison(run, left, right)
        return left, right
    if Moment in (type(left), type(right)) and str in (type(left), type(right)):
        zone = zone_of(run)
        first, second = moment_or_none(left, zone), moment_or_none(right, zone)
        if first is None or second is None:
            raise Fault(f"{sign} compares a date with a date: the text is no ISO date")
        return first.at, second.at
    first_number, second_number = number_or_none(left), number_or_none(right)
    if first_number is None or second_number is None:
        raise Fault(f"{sign} compares numbers, texts or dates, got {described(left)} and {described(right)}")
    return first_number, second_number


def _comparison(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[[Run, Any, Any], bool]:
    def apply(run: Run, left: Any, right: Any) -> bool:
        pair = order(run, sign, left, right)
        return pair is not None and compare(*pair)

    return apply


def has_member(run: Run, left: Any, right: Any) -> bool:
    """Whether an object has a member of that name (`in`)."""
    if type(right) is not dict:
        hint = ": use list.includes(value)" if type(right) is list else ""
        raise Fault(f"`in` looks for a member of an object, got {kind(right)}{hint}")
    name = to_text(run, left)
    check_size(name)
    return name in right


OPERATORS: dict[str, Callable[[Run, Any, Any], Any]] = {
    "+": add,
    "-": _arithmetic("-", operator.sub),
    "*": _arithmetic("*", operator.mul),
    "/": _arithmetic("/", operator.truediv),
    "%": _arithmetic("%", _remainder),
    "**": _arithmetic("**", math.pow),
    "==": equal,
    "!=": lambda run, left, right: not equal(run, left, right),
    "===": same,
    "!==": lambda run, left, right: not same(run, left, right),
    **{
        sign: _comparison(sign, compare)
        for sign, compare in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge))
    },
    "in": has_member,
}


def negated(run: Run, value: Any) -> float:
    """Return the negative of a number (`-a`)."""
    return number(-_operand("-", value))


def type_name(run: Run, value: Any) -> str:
    """Return what JavaScript calls a value's type (`typeof`); null is "undefined", as what is missing."""
    names = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "undefined"}
    return names.get(type(value), "object")


UNARY: dict[str, Callable[[Run, Any], Any]] = {
    "-": negated,
    "+": lambda run, value: to_number(value),
    "typeof": type_name,
}
