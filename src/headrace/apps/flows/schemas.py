"""A JSON Schema that `nodes/schemas.py` takes as a pydantic model, so that `app.llm` can hold a model to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from functools import lru_cache
from typing import Annotated, Any, Literal, Union
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, create_model
from pydantic_core import SchemaError

from headrace.nodes.base import NodeError
from headrace.nodes.schemas import Schema, checked

#: JSON Schema's words for bounds, and pydantic's.
_BOUNDS = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "pattern": "pattern",
}


def model_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return the model of a schema; the same one for an equal schema. Raises NodeError for what we do not take.

    >>> shape = model_of({"type": "object", "properties": {"first name": {"type": "string"}}})
    >>> shape.model_validate({"first name": "Ada"}).model_dump(by_alias=True)
    {'first name': 'Ada'}
    """
    return _model_of(json.dumps(checked(schema)))


def values_of(value: BaseModel, schema: Mapping[str, Any]) -> Any:
    """Return a model's value as JSON that is valid by the schema: what may be missing and is null is left out."""
    return _pruned(value.model_dump(mode="json", by_alias=True), checked(schema))


@lru_cache(maxsize=128)
def _model_of(text: str) -> type[BaseModel]:
    schema = json.loads(text)
    name = re.sub(r"\W+", "_", str(schema.get("title", "")), flags=re.ASCII).strip("_")[:60]
    try:
        return _object(schema, name or "Extraction")
    except SchemaError as error:
        raise NodeError(f"the schema cannot be used: {str(error).splitlines()[-1].strip()}") from None


def _object(schema: Schema, name: str) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for number, (key, part) in enumerate(schema["properties"].items()):
        kind = _type({rule: value for rule, value in part.items() if rule != "description"}, f"{name}_{number}")
        # Not the key itself: it may be no name of Python, or one that models use.
        told = Field(alias=key, title=key, description=part.get("description"))
        needed = key in schema["required"]
        kind = kind if needed else Union[kind, None]  # noqa: UP007 - known at run time only
        fields[f"field_{number}"] = Annotated[kind, told], ... if needed else None
    extra: Literal["forbid", "ignore"] = "ignore" if schema["additionalProperties"] else "forbid"
    made: type[BaseModel] = create_model(name, __config__=ConfigDict(extra=extra), **fields)
    return made


def _type(schema: Schema, name: str) -> Any:
    if "anyOf" in schema:
        options = [_type(one, f"{name}_{number}") for number, one in enumerate(schema["anyOf"])]
        return Union[tuple(options)]  # noqa: UP007
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    match schema["type"]:
        case "object":
            return _object(schema, name)
        case "array":
            return _annotated(list[_type(schema["items"], name)], _bounds(schema), *_unique(schema))  # type: ignore[misc]
    return _single(schema)


def _single(schema: Schema) -> Any:
    match schema["type"]:
        case "string":
            return _annotated(str, _bounds(schema), *_format(schema))
        case "number":
            return _annotated(float, _bounds(schema, allow_inf_nan=False), PlainSerializer(_shortest, Any))
        case "integer":
            return _annotated(int, _bounds(schema))
        case "boolean":
            return bool
    return None


def _annotated(kind: Any, *notes: Any) -> Any:
    return Annotated[(kind, *notes)]


def _bounds(schema: Schema, **more: Any) -> Any:
    given = {_BOUNDS[key]: value for key, value in schema.items() if key in _BOUNDS}
    return Field(description=schema.get("description"), **given, **more)


def _format(schema: Schema) -> list[Any]:
    name = schema.get("format")
    if name is None:
        return []
    fits = _FORMATS[name]

    def look(value: str) -> str:
        if not fits(value):
            raise ValueError(f"must be a {name}")
        return value

    return [AfterValidator(look), Field(json_schema_extra={"format": name})]


def _unique(schema: Schema) -> list[Any]:
    return [AfterValidator(_all_different)] if schema.get("uniqueItems") else []


def _all_different(values: list[Any]) -> list[Any]:
    if any(one in values[:number] for number, one in enumerate(values)):
        raise ValueError("must not have an entry twice")
    return values


def _shortest(value: float) -> float:
    """Return a whole number as one: JSON knows one kind of number."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _by(parse: Callable[[str], object], pattern: str) -> Callable[[str], bool]:
    def fits(value: str) -> bool:
        try:
            parse(value)
        except ValueError:
            return False
        return re.fullmatch(pattern, value, re.ASCII) is not None

    return fits


_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _by(date.fromisoformat, r"\d{4}-\d\d-\d\d"),
    "date-time": _by(datetime.fromisoformat, r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d\S*"),
    "time": _by(time.fromisoformat, r"\d\d:\d\d\S*"),
    "uuid": _by(UUID, r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    "email": _by(str, r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "uri": _by(str, r"[A-Za-z][A-Za-z0-9+.-]*:\S+"),
}


def _pruned(value: Any, schema: Schema) -> Any:
    if isinstance(value, list):
        items = next((one["items"] for one in _options(schema) if one.get("type") == "array"), None)
        return value if items is None else [_pruned(one, items) for one in value]
    if not isinstance(value, dict):
        return value
    objects = [one for one in _options(schema) if one.get("type") == "object"]
    found = next((one for one in objects if one["properties"].keys() >= value.keys()), None)
    if found is None:
        return value
    parts, needed = found["properties"], found["required"]
    return {
        key: _pruned(one, parts[key])
        for key, one in value.items()
        if one is not None or key in needed or _may_be_null(parts[key])
    }


def _options(schema: Schema) -> list[Schema]:
    return [deep for one in schema["anyOf"] for deep in _options(one)] if "anyOf" in schema else [schema]


def _may_be_null(schema: Schema) -> bool:
    return any(one.get("type") == "null" or None in one.get("enum", ()) for one in _options(schema))
