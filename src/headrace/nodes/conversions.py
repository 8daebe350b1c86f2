"""How values become values of another type, as flows expect it: as in JavaScript, lists and objects as JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.budget import MAX_DEPTH
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.values import EXACT, MAX_DIGITS, is_number, kind, number_text
from headrace.model.strict_json import finite_number, refuse_constant

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: Python writes no more digits than it reads, which are 4300.
_MAX_BITS = 14_000
_OTHER_BASE = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+")


def text_of(value: Any) -> str:
    """Return a value as a text.

    >>> text_of(3.0), text_of(True), text_of({"a": [1]}), text_of(None)
    ('3', 'true', '{"a":[1]}', 'null')
    """
    if isinstance(value, str):
        return value
    if is_number(value):
        return _digits(value)
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _digits(value: float) -> str:
    """Return a number as text: whole ones beyond those of JavaScript with all their digits."""
    try:
        return number_text(value)
    except Fault:
        if isinstance(value, int) and value.bit_length() < _MAX_BITS:
            return str(value)
    raise InvalidInputError("value", "must be a number that can be written", kind(value))


def number_of(value: Any) -> int | float | None:
    """Return a value as a number, None where it is none; an empty text and an empty list are 0.

    >>> number_of(" 12.50 "), number_of("0x10"), number_of(True), number_of("12 kg"), number_of("7.0")
    (12.5, 16, 1, None, 7)
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, list) and len(value) <= 1:
        return number_of(text_of(value[0])) if value and value[0] is not None else 0
    return _parsed_number(value.strip()) if isinstance(value, str) else None


def _parsed_number(text: str) -> int | float | None:
    if not text:
        return 0
    if len(text) > MAX_DIGITS:
        return None
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("+-").isdecimal():
        return int(text)
    found = float(text)
    if not math.isfinite(found):
        return None
    return int(found) if found.is_integer() and abs(found) < EXACT else found


def truth_of(value: Any) -> bool | None:
    """Return a truth value that is written as one, None where it is none.

    >>> truth_of("TRUE"), truth_of("0"), truth_of(1), truth_of("yes"), truth_of("")
    (True, False, True, None, None)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not value.strip():
            return None
    number = number_of(value)
    return bool(number) if number in (0, 1) else None


def parsed(text: str, wanted: type) -> Any:
    """Return the list or object that a text of JSON stands for, None where it stands for none.

    Quotes may be single ones, as people write them.

    >>> parsed("['a', 1]", list), parsed('{"a": 1}', dict), parsed("[1", list), parsed("1", list)
    (['a', 1], {'a': 1}, None, None)
    """
    for written in (text, text.replace("'", '"')):
        try:
            found = json.loads(written, parse_constant=refuse_constant, parse_float=finite_number)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, wanted) else None
    return None


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same type, within lists and objects too: 1 is 1.0, but not true.

    >>> same(1, 1.0), same(1, True), same({"a": [1, 2]}, {"a": [1, 2]}), same("1", 1)
    (True, False, True, False)
    """
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return fingerprint(one) == fingerprint(other)


def fingerprint(value: Any) -> str:
    """Return a text that is equal for values that are `same`, and for no others.

    >>> fingerprint({"b": 1.0, "a": None}) == fingerprint({"a": None, "b": 1})
    True
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise InvalidInputError("value", f"must be nested at most {MAX_DEPTH} levels deep", kind(value))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one, depth + 1) for name, one in value.items()}
    return value
