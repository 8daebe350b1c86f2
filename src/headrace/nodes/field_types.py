"""The types that fields of items are declared with, and how a value becomes one of another type."""

from __future__ import annotations

from typing import Any

from headrace.nodes.conversions import number_of, parsed, text_of, truth_of

KINDS = ("any", "string", "number", "boolean", "array", "object")


def kind_of(value: object) -> str:
    """Return the type of a JSON value; of null it is "any".

    >>> [kind_of(value) for value in ("a", 1.5, True, [], {}, None)]
    ['string', 'number', 'boolean', 'array', 'object', 'any']
    """
    if isinstance(value, bool):
        return "boolean"
    for kind, types in (("string", str), ("number", (int, float)), ("array", list), ("object", dict)):
        if isinstance(value, types):
            return kind
    return "any"


def convert(value: Any, kind: str) -> tuple[Any, bool]:
    """Return a value as another type and whether it could become one; if not, the value as it was.

    >>> convert("7", "number"), convert("[1]", "array"), convert("no", "number")
    ((7, True), ([1], True), ('no', False))
    """
    if kind == "string":
        return text_of(value), True
    found = _made(value, kind)
    return (value, False) if found is None else (found, True)


def _made(value: Any, kind: str) -> Any:
    if kind == "boolean":
        return truth_of(value)
    if kind == "number":
        return number_of(value)
    return parsed(value, list if kind == "array" else dict) if isinstance(value, str) else None
