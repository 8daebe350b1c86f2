"""Hooks for `json.loads`: what Python's parser takes and JSON, or a store, does not. Each raises ValueError."""

from __future__ import annotations

import math
from typing import Any, NoReturn


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, as `parse_constant`.

    >>> import json
    >>> json.loads("[NaN]", parse_constant=refuse_constant)
    Traceback (most recent call last):
    ValueError: NaN is not JSON
    """
    raise ValueError(f"{name} is not JSON")


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
