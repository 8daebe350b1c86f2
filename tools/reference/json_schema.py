"""JSON Schema in words: types of members, and a table of those of a shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.reference.text import table

_FORMATS = {"date-time": "instant", "uuid": "UUID", "binary": "bytes"}
_BOUNDS = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " of them"))


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in words; references lead to the section of their shape.

    >>> type_of({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9.0}, {"type": "null"}]})
    'integer, 1 to 9; or null'
    >>> type_of({"type": "array", "items": {"$ref": "#/components/schemas/Job"}})
    'list of [`Job`](#job)'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    if "anyOf" in schema:
        return "; or ".join(dict.fromkeys(type_of(one) for one in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    return _plain(schema) + _bounds(schema)


def _plain(schema: Mapping[str, Any]) -> str:
    match schema.get("type"):
        case "array":
            items = type_of(schema.get("items", {}))
            return "list" if items == "any JSON" else f"list of {items}"
        case "object":
            values = schema.get("additionalProperties")
            return f"object of {type_of(values)}" if isinstance(values, dict) and values else "object"
        case "string":
            return _FORMATS.get(schema.get("format", ""), "text")
        case str() as name:
            return name
    return "any JSON"


def _bounds(schema: Mapping[str, Any]) -> str:
    for least, most, unit in _BOUNDS:
        low, high = schema.get(least), schema.get(most)
        if low is not None and high is not None:
            return f", {low:g} to {_number(high)}{unit}"
        if high is not None:
            return f", at most {_number(high)}{unit}"
        if low is not None:
            return f", at least {low:g}{unit}"
    return ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def members(schema: Mapping[str, Any]) -> str:
    """Return the members of a shape as a table, or the values of one that is a set of words."""
    if "enum" in schema:
        return f"One of {type_of(schema)}.\n"
    rows = list(_rows(schema))
    if not rows:
        return "It has no members.\n"
    return table(["member", "type", "", "meaning"], rows) + "\n"


def _rows(schema: Mapping[str, Any]) -> Iterator[list[str]]:
    required = set(schema.get("required", ()))
    for name, member in schema.get("properties", {}).items():
        yield [f"`{name}`", type_of(member), need(member, name in required), member.get("description", "")]


def need(schema: Mapping[str, Any], required: bool) -> str:
    """Return whether a value must be given, or what it is where it is not."""
    if required:
        return "always"
    given = schema.get("default", schema.get("schema", {}).get("default"))
    return "" if given is None or given in ("", []) else f"default `{json.dumps(given)}`"
