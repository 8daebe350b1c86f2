"""Where the elements of a JSON text's list stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_GAP = re.compile(r"[\s,:]*")
_DECODER = json.JSONDecoder()


def list_in(value: Any) -> list[Any] | None:
    """The list of a value: itself, or the longest one among an object's fields; None where there is none.

    >>> list_in({"topic": "tea", "items": ["green", "black"]})
    ['green', 'black']
    """
    if isinstance(value, dict):
        lists = [part for part in value.values() if isinstance(part, list)]
        return max(lists, key=len, default=None)
    return value if isinstance(value, list) else None


def element_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each element of the list in this JSON text; none where it is no JSON or has no list.

    >>> element_spans('{"items": [1, "two"]}')
    [(11, 12), (14, 19)]
    """
    try:
        listed = list_in(json.loads(text))
    except ValueError:
        return []
    if not listed:
        return []
    opening = text.index(text.lstrip()[0])
    if text[opening] == "[":
        return [span for _, span in _values(text, opening + 1)]
    members = list(_values(text, opening + 1))
    start = next(span[0] for value, span in members[1::2] if isinstance(value, list) and value == listed)
    return [span for _, span in _values(text, start + 1)]


def _values(text: str, at: int) -> Iterator[tuple[Any, tuple[int, int]]]:
    """The values that follow one another from here, keys of an object included, up to the closing bracket."""
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if text[at] in "]}":
            return
        value, end = _DECODER.raw_decode(text, at)
        yield value, (at, end)
        at = end
