"""Hooks for `json.loads`: what Python's parser takes and JSON, or a store, does not. Each raises ValueError."""

from __future__ import annotations

import math
from typing import Any, NoReturn

#: What Python's errors about numbers of very many digits name.
_NUMBERS = "int_max_str_digits"


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, as `parse_constant`.

    >>> import json
    >>> json.loads("[NaN]", parse_constant=refuse_constant)
    Traceback (most recent call last):
    ValueError: NaN is not JSON
    """
    raise ValueError(f"{name} is not JSON")


def json_fault(error: ValueError) -> str:
    """Return why JSON is refused; of a number that Python does not read, not how Python is told to.

    >>> json_fault(ValueError("Exceeds the limit (4300 digits) ...; use sys.set_int_max_str_digits()"))
    'a number has too many digits: write it as a text'
    """
    return "a number has too many digits: write it as a text" if _NUMBERS in str(error) else str(error)


def finite_number(digits: str) -> float:
    """Return a number that is not too large to be one, as `parse_float`.

    >>> finite_number("1e3")
    1000.0
    """
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:20]} is too large a number")
    return value


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different, as `object_pairs_hook`.

    >>> unique_members([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found
