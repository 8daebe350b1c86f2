"""JSON from outside that can be kept: what no store takes is told with its place, before it becomes part of an item."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from headrace.model.payload import MAX_DEPTH
from headrace.model.strict_json import refuse_constant

#: Levels that values may have: stores take so many with what is around an item.
MAX_LEVELS = MAX_DEPTH - 8
#: The way to a value: that to what holds it, and its name or number there.
_Way = tuple[Any, str | int] | None


def parsed_json(text: str) -> Any:
    """Return what a JSON text says. Raises ValueError for what is no JSON, or could not be kept, naming its place.

    >>> parsed_json('{"a": [1]}')
    {'a': [1]}
    """
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {MAX_LEVELS} levels") from None
    if wrong := wrong_part(value):
        raise ValueError(wrong)
    return value


def wrong_part(value: Any, *, levels: int = MAX_LEVELS) -> str:
    """Return which part of a value no store takes, or is too deep, and where; an empty text where there is none.

    >>> wrong_part({"a": [1, float("inf")]})
    'a[1] is a number that JSON has not: inf'
    """
    # Containers alone, each with the way to it: a large file has many more values than those.
    todo: list[tuple[_Way, Any, int]] = [(None, [value], 0)]
    while todo:
        way, container, level = todo.pop()
        named = isinstance(container, Mapping)
        if named and (why := next(filter(None, map(_why_no_text, container)), "")):
            return f"a name in {_place(way)} {why}"
        if level > levels:
            return f"{_place(way)[:60]}… is nested deeper than {levels} levels"
        for key, part in container.items() if named else enumerate(container):
            if isinstance(part, Mapping | list):
                todo.append(((way, key), part, level + 1))
            elif why := _why_not(part):
                return f"{_place((way, key))} {why}"
    return ""


def _place(way: _Way) -> str:
    steps: list[str] = []
    while way is not None:
        way, key = way
        steps.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    # The first step leads from nowhere to the value itself.
    return "".join(reversed(steps[:-1])).removeprefix(".") or "the value"


def _why_not(part: Any) -> str:
    if isinstance(part, float) and not math.isfinite(part):
        return f"is a number that JSON has not: {part}"
    return _why_no_text(part)


def _why_no_text(text: Any) -> str:
    r"""Return why a text cannot be kept: NUL, or half of a character.

    >>> _why_no_text("a\0"), _why_no_text("b")
    ('holds a NUL character (position 1)', '')
    """
    if not isinstance(text, str):
        return ""
    if "\0" in text:
        return f"holds a NUL character (position {text.index(chr(0))})"
    if text.isascii():
        return ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"holds half of a character, \\u{ord(text[error.start]):04x} (position {error.start})"
    return ""
