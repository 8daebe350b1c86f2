"""JSON schemas for models: what providers accept in strict mode, and what they are told in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, RootModel

from headrace.model.errors import InvalidInputError

#: Rules that strict modes refuse or read differently. They become hints in the description; the value is checked later.
_HINTS = (
    *("minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("multipleOf", "minItems", "maxItems", "uniqueItems", "default"),
)
_KEPT = ("type", "enum", "description")


class NotStrictError(Exception):
    """The model holds a type that no strict schema can say; stays within the extraction."""


def plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model: shared, so it must not be changed.

    Raises InvalidInputError for what has no named fields.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)) or issubclass(model, RootModel):
        raise InvalidInputError("model", "must be a pydantic model with named fields", model)
    return _schemas(model)[0]


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema as strict modes want it: every field required, nothing beside them, no rules on values.

    Shared, so it must not be changed. Raises NotStrictError where the model holds mappings, tuples or values of any
    type.
    """
    plain_schema(model)
    strict = _schemas(model)[1]
    if strict is None:
        raise NotStrictError
    return strict


@lru_cache(maxsize=256)
def _schemas(model: type[BaseModel]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the schema of a model, and the strict one where there is one: making them takes milliseconds."""
    schema = model.model_json_schema()
    try:
        strict = _strict(schema)
        if "$defs" in schema:
            strict["$defs"] = {name: _strict(definition) for name, definition in schema["$defs"].items()}
    except NotStrictError:
        return schema, None
    return schema, strict


def schema_name(model: type[BaseModel]) -> str:
    """The model's name as providers allow it: letters, digits, `_` and `-`, at most 64."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", model.__name__)[:64]


def _strict(node: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _reference(node)
    options = node.get("anyOf") or node.get("oneOf")
    if options:
        return _described({"anyOf": [_strict(option) for option in options]}, node)
    if "allOf" in node and len(node["allOf"]) == 1:
        return _strict({**node["allOf"][0], **{key: value for key, value in node.items() if key != "allOf"}})
    if "const" in node:
        return _described({"enum": [node["const"]]}, node)
    strict = {key: node[key] for key in _KEPT if key in node}
    if node.get("type") == "object":
        strict.update(_object(node))
    elif node.get("type") == "array":
        strict["items"] = _items(node)
    elif "type" not in node and "enum" not in node:
        raise NotStrictError
    return _described(strict, node)


def _reference(node: Mapping[str, Any]) -> dict[str, Any]:
    reference = {"$ref": node["$ref"]}
    described = _described({"anyOf": [reference]}, node)  # nothing may stand beside a reference
    return described if "description" in described else reference


def _object(node: Mapping[str, Any]) -> dict[str, Any]:
    if "properties" not in node:
        raise NotStrictError
    return {
        "properties": {name: _strict(field) for name, field in node["properties"].items()},
        "required": list(node["properties"]),
        "additionalProperties": False,
    }


def _items(node: Mapping[str, Any]) -> dict[str, Any]:
    if "items" not in node or "prefixItems" in node:
        raise NotStrictError
    return _strict(node["items"])


def _described(strict: dict[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    hints = [f"{key}: {node[key]}" for key in _HINTS if node.get(key) is not None]
    words = [node.get("description", ""), f"({', '.join(hints)})" if hints else ""]
    description = " ".join(filter(None, words))
    return {**strict, "description": description} if description else strict
