"""Values of HTTP requests: pairs that are written row by row, JSON that is written as text, lists in queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.model.strict_json import finite_number, json_fault, refuse_constant
from headrace.nodes.base import NodeError
from headrace.nodes.parameters import Parameters

#: Text of pairs that are sent.
Pairs = list[tuple[str, str]]
#: How lists are written into a query: `a=1&a=2`, `a[]=1&a[]=2` or `a[0]=1&a[1]=2`.
ARRAYS = ("repeat", "brackets", "indices")


def as_text(value: Any) -> str:
    """Return a value as a query or a header has it.

    >>> as_text(True), as_text(None), as_text(1.0), as_text([1])
    ('true', '', '1', '[1]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return "" if value is None else as_json(value)


def as_json(value: Any) -> str:
    """Return a value as JSON, as short as it is.

    >>> as_json({"a": [1, "ü"]})
    '{"a":[1,"ü"]}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_json(text: str) -> Any:
    """Return what a JSON text says. Raises ValueError, also for what only some programs call JSON.

    >>> parse_json("[1]")
    [1]
    """
    try:
        return json.loads(text, parse_constant=refuse_constant, parse_float=finite_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(json_fault(error)) from None


def json_at(at: Parameters, path: str) -> Any:
    """Return what a parameter holds that is JSON: a value, or a text of one. Raises NodeError."""
    value = at.get(path)
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError as error:
        shown = value if len(value) <= 80 else value[:77] + "…"
        raise NodeError(f"{at.field}.{path} must be JSON ({error}), got {shown!r}") from None


def object_at(at: Parameters, path: str) -> dict[str, Any]:
    """Return what a parameter holds that is a JSON object; nothing written is an empty one. Raises NodeError."""
    if at.get(path) in (None, ""):
        return {}
    value = json_at(at, path)
    if not isinstance(value, dict):
        raise NodeError(f'{at.field}.{path} must be a JSON object such as {{"a": "b"}}, got {as_json(value)[:80]}')
    return value


def rows_at(at: Parameters, path: str) -> list[dict[str, Any]]:
    """Return the rows of a form that have a name. Raises InvalidInputError, NodeError."""
    rows = at.listed(path)
    if not all(isinstance(row, dict) for row in rows):
        raise NodeError(f'{at.field}.{path} must be a list of objects such as {{"name": "a", "value": "b"}}')
    return [row for row in rows if as_text(row.get("name"))]


def named_values(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the values of rows by their names; a name that is repeated has the list of its values.

    >>> named_values([{"name": "a", "value": 1}, {"name": "a", "value": 2}, {"name": "b"}])
    {'a': [1, 2], 'b': None}
    """
    found: dict[str, Any] = {}
    repeated = set()
    for row in rows:
        name, value = as_text(row["name"]), row.get("value")
        if name not in found:
            found[name] = value
        elif name in repeated:
            found[name] = [*found[name], value]
        else:
            repeated.add(name)
            found[name] = [found[name], value]
    return found


def flattened(values: Mapping[str, Any], arrays: str) -> Pairs:
    """Return values as pairs, lists and objects within them too.

    >>> flattened({"a": [1, 2], "b": {"c": True}}, "brackets")
    [('a[]', '1'), ('a[]', '2'), ('b[c]', 'true')]
    """
    return [pair for name, value in values.items() for pair in _pairs(name, value, arrays)]


def _pairs(name: str, value: Any, arrays: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _pairs(f"{name}[{key}]", inner, arrays)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            suffix = {"repeat": "", "brackets": "[]", "indices": f"[{index}]"}[arrays]
            yield from _pairs(name + suffix, inner, arrays)
    else:
        yield name, as_text(value)
