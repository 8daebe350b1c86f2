"""Functions of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.functions.listing import Table
from headrace.model.expressions.operators import OPERATORS
from headrace.model.expressions.values import (
    MAX_DIGITS,
    described,
    number,
    number_or_none,
    number_text,
    to_number,
    to_whole,
    truthy,
)

NUMBERS = Table("Numbers and truth values")
_LEADING = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_LEADING_WHOLE = re.compile(r"\s*([+-]?[0-9]+)")
#: Enough digits for every floating point number with twenty behind the point.
_EXACTLY = Context(prec=400)


@NUMBERS.listed(
    "Number",
    "The number that a value stands for; an error if it stands for none.",
    ("Number('12.50')", 12.5),
    also=("toNumber",),
)
def as_number(run: Run, value: Any) -> float:
    """Return the number."""
    return to_number(value)


def _leading(value: Any, pattern: re.Pattern[str]) -> str:
    text = number_text(value) if type(value) in (int, float) else value
    found = pattern.match(text[:MAX_DIGITS]) if type(text) is str else None
    if found is None:
        raise Fault(f"needs a text that begins with a number, got {described(value)}")
    return found[1]


@NUMBERS.listed("parseInt", "The whole number that a text begins with.", ("parseInt('42 apples')", 42), also=("toInt",))
def parse_whole(run: Run, value: Any, base: Any = 10) -> float:
    """Return it."""
    if base != 10:
        raise Fault("reads decimal digits alone: leave out the base, or give 10")
    return number(float(_leading(value, _LEADING_WHOLE)))


@NUMBERS.listed("parseFloat", "The number that a text begins with.", ("parseFloat('1.5 kg')", 1.5), also=("toFloat",))
def parse_number(run: Run, value: Any) -> float:
    """Return it."""
    return number(float(_leading(value, _LEADING)))


@NUMBERS.listed("isNaN", "Whether a value stands for no number.", ("isNaN('abc')", True), also=("Number.isNaN",))
def is_no_number(run: Run, value: Any) -> bool:
    """Return whether there is no number."""
    return number_or_none(value) is None


@NUMBERS.listed("Number.isInteger", "Whether a value is a whole number.", ("Number.isInteger(4.5)", False))
def is_whole(run: Run, value: Any) -> bool:
    """Return whether it is whole."""
    return type(value) is int or (type(value) is float and value.is_integer())


@NUMBERS.listed(
    "toFixed", "A number as text with so many digits behind the point, at most 20.", ("(2.345).toFixed(1)", "2.3")
)
def to_fixed(run: Run, value: Any, digits: Any = 0) -> str:
    """Return it with fixed digits."""
    return format(_rounded(to_number(value), _digits(digits, 0)), "f")


def _digits(value: Any, least: int) -> int:
    digits = to_whole(value)
    if not least <= digits <= 20:
        raise Fault(f"needs a number of digits from {least} to 20, got {digits}")
    return digits


def _rounded(value: float, digits: int) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACTLY)


@NUMBERS.listed("round", "A number, rounded to so many digits behind the point.", ("(2.346).round(2)", 2.35))
def rounded(run: Run, value: Any, digits: Any = 0) -> float:
    """Return it rounded: halves away from zero, as people write them."""
    value, digits = to_number(value), _digits(digits, 0)
    return number(float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACTLY)))


def _half_up(value: float) -> float:
    return math.floor(value + 0.5)


def _square_root(value: float) -> float:
    if value < 0:
        raise Fault("needs a number that is not negative")
    return math.sqrt(value)


def _sign(value: float) -> float:
    return (value > 0) - (value < 0)


_SINGLE: tuple[tuple[str, str, Callable[[float], float], tuple[str, float], tuple[str, ...]], ...] = (
    ("Math.round", "The nearest whole number; halves upwards.", _half_up, ("Math.round(-2.5)", -2), ()),
    ("floor", "The next whole number below.", math.floor, ("(2.7).floor()", 2), ("Math.floor",)),
    ("ceil", "The next whole number above.", math.ceil, ("(2.1).ceil()", 3), ("Math.ceil",)),
    ("abs", "A number without its sign.", abs, ("(-3).abs()", 3), ("Math.abs",)),
    ("Math.trunc", "A number without its fraction.", math.trunc, ("Math.trunc(-2.7)", -2), ()),
    ("Math.sign", "1, 0 or -1, as the sign of a number is.", _sign, ("Math.sign(-3)", -1), ()),
    ("Math.sqrt", "The square root.", _square_root, ("Math.sqrt(9)", 3), ()),
)


def _enter(
    name: str, text: str, compute: Callable[[float], float], example: tuple[str, float], also: tuple[str, ...]
) -> None:
    def apply(run: Run, value: Any) -> float:
        return number(compute(to_number(value)))

    NUMBERS.listed(name, text, example, also)(apply)


for _one in _SINGLE:
    _enter(*_one)


@NUMBERS.listed("Math.pow", "A number to the power of another, as **.", ("Math.pow(2, 10)", 1024))
def power(run: Run, value: Any, exponent: Any) -> Any:
    """Return the power."""
    return OPERATORS["**"](run, value, exponent)


@NUMBERS.listed(
    "Boolean",
    'Whether a value counts as true: all do but null, false, 0 and "".',
    ("Boolean('')", False),
)
def as_truth(run: Run, value: Any) -> bool:
    """Return its truth value."""
    return truthy(value)


@NUMBERS.listed("toBoolean", 'Whether a value is true: "false", "no" and "0" are not.', ("'no'.toBoolean()", False))
def to_boolean(run: Run, value: Any) -> bool:
    """Return the truth value that a text stands for."""
    if type(value) is str and len(value) < 10:
        return value.strip().lower() not in ("", "false", "no", "0")
    return truthy(value)
