"""Where a path leads in JSON data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

#: Nothing lies there; null does not mean that.
MISSING: Final = object()

_INDEX = re.compile(r"-?[0-9]{1,9}")


def look_up(value: Any, path: Sequence[str | int]) -> Any:
    """Return what lies at a path of a JSON value, or `MISSING`.

    Keys lead into objects and indices into arrays, negative ones from their end. A text of digits, as in "pages.0", is
    an index where it comes to an array.

    >>> look_up({"pages": [{"n": 7}]}, ["pages", "0", "n"])
    7
    """
    for step in path:
        value = _step(value, step)
        if value is MISSING:
            break
    return value


def _step(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(step, MISSING) if isinstance(step, str) else MISSING
    if not isinstance(value, list | tuple) or isinstance(step, bool):
        return MISSING
    if isinstance(step, str):
        if not _INDEX.fullmatch(step):
            return MISSING
        step = int(step)
    return value[step] if -len(value) <= step < len(value) else MISSING
