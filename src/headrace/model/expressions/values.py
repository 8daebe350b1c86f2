"""What values are to the language: their kinds, and how one becomes a number or a truth value, as in JavaScript."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from sys import getsizeof
from typing import Any

from headrace.model.expressions.errors import Fault
from headrace.model.expressions.moments import Moment

#: Whole numbers above are no longer exact as JSON numbers; what is computed of them is a floating point number.
EXACT = 2**53
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: Longer texts are no numbers: reading them would take long.
MAX_DIGITS = 400
#: Memory of a text that is no ASCII, without its characters.
_HEADER = getsizeof("ä") - 2
_KINDS: dict[type, str] = {
    **{type(None): "null", bool: "a truth value", int: "a number", float: "a number"},
    **{str: "a text", list: "a list", dict: "an object", Moment: "a date"},
}


def kind(value: object) -> str:
    """Return what messages call a value.

    >>> kind([1])
    'a list'
    """
    return _KINDS.get(type(value), "no plain value")


def is_number(value: object) -> bool:
    """Whether a value is a number, which truth values are not."""
    return type(value) is int or type(value) is float


def truthy(value: Any) -> bool:
    """Whether a value counts as true: all do but null, false, 0 and the empty text."""
    return True if type(value) is list or type(value) is dict else bool(value)


def number(value: float) -> float:
    """Return a computed number as JSON has it: whole where it can be. Raises Fault if there is no such number.

    >>> number(4.0)
    4
    """
    if isinstance(value, int) and -EXACT <= value <= EXACT:
        return value
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise Fault("the number is too large, or is none")
    return int(value) if value.is_integer() and -EXACT <= value <= EXACT else value


def number_or_none(value: Any) -> float | None:
    """Return the number that a value stands for: truth values are 1 and 0, texts of digits are numbers."""
    if type(value) is int or type(value) is float:
        return number(value)
    if type(value) is bool:
        return int(value)
    if type(value) is str and len(value) <= MAX_DIGITS:
        text = value.strip()
        if not text:
            return 0
        return number(float(text)) if _NUMBER.fullmatch(text) else None
    return value.milliseconds if type(value) is Moment else None


def to_number(value: Any) -> float:
    """Return the number that a value stands for. Raises Fault."""
    found = number_or_none(value)
    if found is None:
        raise Fault(f"needs a number, got {described(value)}")
    return found


def described(value: Any) -> str:
    """Return a value's kind for a message, and the value where it is short."""
    if type(value) is str:
        return f"the text {value[:40]!r}" + ("…" if len(value) > 40 else "")
    return kind(value)


def to_whole(value: Any) -> int:
    """Return the number that a value stands for without its fraction."""
    return int(to_number(value))


def number_text(value: float) -> str:
    """Return a number as JavaScript writes it.

    >>> number_text(1e21), number_text(0.1), number_text(2.0)
    ('1e+21', '0.1', '2')
    """
    if type(value) is int and -EXACT <= value <= EXACT:
        return str(value)
    if isinstance(value, int) and abs(value) < 10**21:
        return str(value)
    value = number(value)
    if 1e-6 <= abs(value) < 1e21:
        text = format(Decimal(repr(value)), "f")
        return text.removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}" if exponent else mantissa.removesuffix(".0")


def text_size(text: str) -> int:
    """Return what a text counts as: the memory it takes, or its bytes in UTF-8 where these are more."""
    return getsizeof(text) if text.isascii() else max(getsizeof(text), 2 * len(text))


def width(*texts: str) -> int:
    """Return how many bytes a character takes in memory in the widest of some texts."""
    widest = 1
    for text in texts:
        if not text.isascii():
            per = (getsizeof(text) - _HEADER) / (len(text) + 1)
            widest = max(widest, 4 if per > 3 else 2 if per > 1.5 else 1)
    return widest


def need_text(value: Any) -> str:
    """Return a value that is a text. Raises Fault."""
    if type(value) is not str:
        raise Fault(f"needs a text, got {kind(value)}" + (": use .toString()" if is_number(value) else ""))
    return value


def need_list(value: Any) -> list[Any]:
    """Return a value that is a list. Raises Fault."""
    if type(value) is not list:
        raise Fault(f"needs a list, got {kind(value)}")
    return value


def need_object(value: Any) -> dict[str, Any]:
    """Return a value that is an object. Raises Fault."""
    if type(value) is not dict:
        raise Fault(f"needs an object, got {kind(value)}")
    return value
