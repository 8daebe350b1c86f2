"""Fields of items by their path: `a.b`, `a[0].b`, `a["b.c"]`; without dot notation a path is one plain name.

Nothing is changed in place: `put` and `drop` return a copy of what is on the way, and share the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from headrace.model.errors import InvalidInputError

#: What `get` returns where there is nothing, for those who have to tell it from null.
MISSING: Any = object()

_MAX_PATH = 1_000
#: How far behind its end a list may be written to; what is between becomes null.
_MAX_GAP = 1_000
_STEP = re.compile(r"""\[(["'])(.*?)\1\]|[^.\[\]]+""")


def steps_of(path: str) -> tuple[str, ...]:
    """Return the steps of a path; a text without any is one step. Raises InvalidInputError.

    >>> steps_of('people[0].name["first.last"]')
    ('people', '0', 'name', 'first.last')
    """
    if len(path) > _MAX_PATH:
        raise InvalidInputError("field name", f"must have at most {_MAX_PATH} characters", path)
    found = tuple(match[2] if match[1] else match[0] for match in _STEP.finditer(path))
    return found or (path,)


def get(data: Any, path: str, *, dots: bool = True, default: Any = None) -> Any:
    """Return what stands at a path; a member that is called like the whole path comes first.

    >>> get({"a": [{"b": 1}]}, "a[0].b"), get({"a.b": 2}, "a.b"), get({"a": {}}, "a.b", default="none")
    (1, 2, 'none')
    """
    if isinstance(data, Mapping) and path in data:
        return data[path]
    if not dots:
        return default if not isinstance(data, Mapping) else data.get(_plain(path), default)
    for step in steps_of(path):
        data = _below(data, step)
        if data is MISSING:
            return default
    return data


def has(data: Any, path: str, *, dots: bool = True) -> bool:
    """Whether something, null among it, stands at a path.

    >>> has({"a": {"b": None}}, "a.b"), has({"a": 1}, "a.b")
    (True, False)
    """
    return get(data, path, dots=dots, default=MISSING) is not MISSING


def put(data: Mapping[str, Any], path: str, value: Any, *, dots: bool = True) -> dict[str, Any]:
    """Return data with a value at a path; what is missing on the way is made, a list where a number follows.

    >>> put({"a": 1}, "b.c", 2), put({}, "a[1]", "x"), put({"a": 1}, "b.c", 2, dots=False)
    ({'a': 1, 'b': {'c': 2}}, {'a': [None, 'x']}, {'a': 1, 'b.c': 2})
    """
    if path in data or not dots:
        return {**data, path if path in data else _plain(path): value}
    steps = steps_of(path)
    made = dict(data)
    target: Any = made
    for step, following in pairwise(steps):
        found = _below(target, step)
        inner: Any = [] if _is_index(following) else {}
        if isinstance(found, dict | list):
            inner = found.copy()
        _assign(target, step, inner, path)
        target = inner
    _assign(target, steps[-1], value, path)
    return made


def drop(data: Mapping[str, Any], path: str, *, dots: bool = True) -> dict[str, Any]:
    """Return data without what stands at a path; an element of a list becomes null, so that the others stay in place.

    >>> drop({"a": {"b": 1, "c": 2}}, "a.b"), drop({"a": [1, 2]}, "a[0]"), drop({"a": 1}, "b.c")
    ({'a': {'c': 2}}, {'a': [None, 2]}, {'a': 1})
    """
    if path in data or not dots:
        gone = path if path in data else _plain(path)
        return {name: value for name, value in data.items() if name != gone}
    if not has(data, path):
        return dict(data)
    *way, last = steps_of(path)
    made = dict(data)
    target: Any = made
    for step in way:
        inner = _below(target, step).copy()
        _assign(target, step, inner, path)
        target = inner
    if isinstance(target, dict):
        del target[last]
    else:
        target[int(last)] = None
    return made


def _below(data: Any, step: str) -> Any:
    """Return a member or an element; `MISSING` where there is none."""
    if isinstance(data, Mapping):
        return data.get(step, MISSING)
    if isinstance(data, list) and _is_index(step) and int(step) < len(data):
        return data[int(step)]
    return MISSING


def _is_index(step: str) -> bool:
    return step.isascii() and step.isdecimal() and len(step) <= 9


def _assign(target: Any, step: str, value: Any, path: str) -> None:
    """Set a member or an element of what was copied already."""
    if isinstance(target, dict):
        target[step] = value
        return
    if not _is_index(step) or int(step) > len(target) + _MAX_GAP:
        rule = f"leads into a list of {len(target)} elements: name one by its number, at most {_MAX_GAP} behind the end"
        raise InvalidInputError(f"field {path!r}", rule, step)
    target.extend([None] * (int(step) + 1 - len(target)))
    target[int(step)] = value


def _plain(path: str) -> str:
    """Return a plain name; the editor writes some as `["a b"]`."""
    return path[2:-2] if path[:2] in ("['", '["') and path[-2:] in ("']", '"]') and len(path) > 4 else path
