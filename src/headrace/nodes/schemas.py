"""JSON schemas of what a model is to give: which of them we take, and how they are made of attributes or an example.

Taken are texts, numbers, truth values, lists, objects and null, choices (`enum`), alternatives (`anyOf`), what is
required, descriptions, bounds, a few formats, and references within the schema. Whatever else is in a schema is
refused by name: a rule that nobody keeps is worse than none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.nodes.base import NodeError
from headrace.nodes.json_texts import parsed_json, wrong_part
from headrace.nodes.patterns import MAX_WEIGHT_OF_ALL, weight_of

Schema = dict[str, Any]

#: A part that may be of several types is one more part for each of them.
MAX_DEPTH, MAX_PARTS = 16, 1_000
#: Levels of JSON that the plain form of a schema of that depth may have: four for a property that may be null.
_PLAIN_LEVELS = 8 * MAX_DEPTH
#: Of lengths, and of bounds of numbers.
MAX_COUNT, MAX_NUMBER = 2**31 - 1, 1e300
FORMATS = ("date", "date-time", "email", "time", "uri", "uuid")
#: What says something to people alone.
_NOTES = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
)
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_RULES: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": _BOUNDS,
    "integer": _BOUNDS,
    "boolean": (),
    "null": (),
    "array": ("items", "minItems", "maxItems", "uniqueItems"),
    "object": ("properties", "required", "additionalProperties"),
}
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_INSTEAD = {
    "oneOf": "use anyOf",
    "allOf": "write one schema with all of it",
    "nullable": 'use "type": ["string", "null"]',
    "patternProperties": "name the properties",
    "prefixItems": "use an object with named properties",
}
_TYPES: Mapping[str, Schema] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "time": {"type": "string", "format": "time"},
    "list": {"type": "array", "items": {"type": "string"}},
}


def checked(value: object) -> Schema:
    """Return a schema of an object in its plain form: references resolved, several types as alternatives.

    `value`: the schema or JSON text of it. Raises NodeError naming the place and what to write instead. A plain form
    is a schema that is taken, too, and its own plain form.

    >>> checked('{"type": "object", "properties": {"a": {"type": ["string", "null"]}}}')["properties"]
    {'a': {'anyOf': [{'type': 'string'}, {'type': 'null'}]}}
    """
    schema = _parsed(value)
    plain = _Walk(schema).plain(schema, "schema")
    if plain.get("type") != "object":
        raise _wrong("schema", "must be of type object; put a list or a single value into a property of it")
    return plain


def of_attributes(attributes: Sequence[Any]) -> Schema:
    """Return the schema of an object by its attributes: `name`, `type`, `description`, `required`.

    >>> of_attributes([{"name": "born", "type": "date", "required": True}])["required"]
    ['born']
    """
    if not attributes:
        raise _wrong("attributes", "must have an entry, such as {name: city, type: string}")
    properties: dict[str, Schema] = {}
    for number, one in enumerate(attributes):
        name = one.get("name") if isinstance(one, Mapping) else None
        if not isinstance(name, str) or not name.strip() or name in properties:
            raise _wrong(f"attributes[{number}].name", "must be a text, and another one for each attribute")
        kind = one.get("type", "string")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise _wrong(f"attributes[{number}].type", f"must be one of {', '.join(_TYPES)}, got {kind!r}")
        words = str(one.get("description") or "")
        properties[name] = {**_TYPES[kind], **({"description": words} if words else {})}
    required = [one["name"] for one in attributes if one.get("required")]
    return {"type": "object", "properties": properties, "required": required}


def of_example(value: object, *, all_required: bool) -> Schema:
    """Return the schema of what is like an example, JSON or text of it. Raises NodeError where it does not say.

    >>> of_example({"cities": ["Oslo"]}, all_required=False)["properties"]
    {'cities': {'type': 'array', 'items': {'type': 'string'}}}
    """
    return _like(_parsed(value, "example"), "example", all_required=all_required)


def _like(value: object, path: str, *, all_required: bool) -> Schema:
    match value:
        case bool():
            return {"type": "boolean"}
        case str():
            return {"type": "string"}
        case int() | float():
            return {"type": "number"}
        case dict() if value and path.count(".") < MAX_DEPTH:
            parts = {key: _like(one, f"{path}.{key}", all_required=all_required) for key, one in value.items()}
            return {"type": "object", "properties": parts, "required": list(parts) if all_required else []}
        case list() if value and path.count(".") < MAX_DEPTH:
            return {"type": "array", "items": _like(value[0], f"{path}.0", all_required=all_required)}
    raise _wrong(path, "must have a value that shows what is wanted there: no null, no empty list or object")


def _parsed(value: object, name: str = "schema") -> Schema:
    if isinstance(value, str):
        try:
            value = parsed_json(value)
        except ValueError as error:
            raise _wrong(name, f"is not JSON: {error}") from None
    elif wrong := wrong_part(value, levels=_PLAIN_LEVELS):
        raise _wrong(name, f"is not JSON: {wrong}")
    if not isinstance(value, Mapping):
        raise _wrong(name, f"must be a JSON object, got {str(value)[:60]!r}")
    return dict(value)


@dataclass(slots=True)
class _Walk:
    """Goes through a schema once, within bounds."""

    root: Schema
    parts: int = 0
    #: What its patterns weigh.
    weight: int = 0
    #: The references that are being resolved.
    within: list[str] = field(default_factory=list)

    def plain(self, schema: object, path: str, depth: int = 0) -> Schema:
        """Return a part of the schema in its plain form. Raises NodeError."""
        self._count(1, path, depth)
        if not isinstance(schema, Mapping):
            raise _wrong(path, "must be an object with a type")
        if "$ref" in schema:
            return self._resolved(schema, path, depth)
        notes = {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)}
        if "anyOf" in schema:
            return {**self._alternatives(schema, path, depth), **notes}
        if "enum" in schema or "const" in schema:
            return {"enum": _choices(schema, path), **notes}
        return {**self._of_types(schema, path, depth), **notes}

    def _count(self, parts: int, path: str, depth: int) -> None:
        self.parts += parts
        if depth > MAX_DEPTH or self.parts > MAX_PARTS:
            raise _wrong(path, f"is too large: at most {MAX_DEPTH} levels and {MAX_PARTS:,} parts are taken")

    def _resolved(self, schema: Mapping[str, Any], path: str, depth: int) -> Schema:
        _refuse_others(schema, {"$ref"}, path)
        target = schema["$ref"]
        if target in self.within:
            raise _wrong(path, f"refers to {target} within itself; write it out as deep as it is needed")
        found: Any = self.root
        for step in str(target).removeprefix("#/").split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        if found is None or not str(target).startswith("#/"):
            raise _wrong(path, f"refers to {target!r}: only to parts of this schema, as #/$defs/NAME, can be referred")
        self.within.append(target)
        plain = self.plain(found, path, depth + 1)
        self.within.pop()
        return {**plain, **({"description": schema["description"]} if "description" in schema else {})}

    def _alternatives(self, schema: Mapping[str, Any], path: str, depth: int) -> Schema:
        _refuse_others(schema, {"anyOf", "$defs", "definitions"}, path)
        options = schema["anyOf"]
        if not isinstance(options, list) or not options:
            raise _wrong(f"{path}.anyOf", "must be a list of schemas")
        deep = [depth + _has_levels(one) for one in options]
        return {"anyOf": [self.plain(one, f"{path}.anyOf[{n}]", deep[n]) for n, one in enumerate(options)]}

    def _of_types(self, schema: Mapping[str, Any], path: str, depth: int) -> Schema:
        given = schema.get("type", "object" if "properties" in schema else None)
        names = given if isinstance(given, list) and given else [given]
        for name in names:
            if not isinstance(name, str) or name not in _RULES:
                raise _wrong(f"{path}.type", f"must be one of {', '.join(_RULES)}, got {name!r}")
        rules = {rule for name in names for rule in _RULES[name]}
        _refuse_others(schema, {"type", "$defs", "definitions"} | rules, path)
        # As alternatives, which they become, are counted.
        self._count(len(names) if len(names) > 1 else 0, path, depth)
        kinds = [self._of_type(name, schema, path, depth) for name in names]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}

    def _of_type(self, name: str, schema: Mapping[str, Any], path: str, depth: int) -> Schema:
        rules = {key: schema[key] for key in _RULES[name] if key in schema}
        if name == "array":
            if "items" not in rules:
                raise _wrong(f"{path}.items", 'must say what the entries are, such as {"type": "string"}')
            rules["items"] = self.plain(rules["items"], f"{path}.items", depth + 1)
        if name == "object":
            return {"type": name, **self._object(rules, path, depth)}
        return {"type": name, **{key: self._rule(name, key, value, f"{path}.{key}") for key, value in rules.items()}}

    def _rule(self, name: str, key: str, value: Any, path: str) -> Any:
        if key in _BOUNDS:
            return _bound(name, key, value, path)
        if key != "pattern":
            _check_rule(key, value, path)
            return value
        self.weight += _weight(value, path)
        if self.weight > MAX_WEIGHT_OF_ALL:
            raise _wrong(path, "is one repetition too many for a schema: use smaller numbers, or * and maxLength")
        return value

    def _object(self, rules: Mapping[str, Any], path: str, depth: int) -> Schema:
        properties = rules.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            raise _wrong(f"{path}.properties", 'must name the properties, such as {"city": {"type": "string"}}')
        others = rules.get("additionalProperties", True)
        if not isinstance(others, bool):
            raise _wrong(f"{path}.additionalProperties", "must be true or false; name the properties")
        required = rules.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) and name in properties for name in required):
            raise _wrong(f"{path}.required", "must be a list of names of properties")
        parts = {name: self.plain(one, f"{path}.properties.{name}", depth + 1) for name, one in properties.items()}
        return {"properties": parts, "required": required, "additionalProperties": others}


def _choices(schema: Mapping[str, Any], path: str) -> list[Any]:
    _refuse_others(schema, {"enum", "const", "type"}, path)
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    scalars = isinstance(values, list) and all(one is None or isinstance(one, str | int) for one in values)
    if not values or not scalars:
        raise _wrong(f"{path}.enum", "must be a list of texts, whole numbers, true, false or null")
    return list(values)


def _has_levels(option: object) -> bool:
    """Whether an alternative is a level of its own: it is one of several again, or stands elsewhere."""
    if not isinstance(option, Mapping):
        return False
    kind = option.get("type")
    return "anyOf" in option or "$ref" in option or (isinstance(kind, list) and len(kind) > 1)


def _bound(name: str, key: str, value: Any, path: str) -> int | float:
    """Return a bound of a number; that of a whole number is one."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER
    least = "above 0" if key == "multipleOf" else f"from {-MAX_NUMBER:g} to {MAX_NUMBER:g}"
    if not number or (key == "multipleOf" and value <= 0):
        raise _wrong(path, f"must be a number {least}, got {value!r}")
    if name == "number":
        return value  # type: ignore[no-any-return]
    if value != math.floor(value):
        raise _wrong(path, f'must be a whole number as the type is integer, got {value!r}; or use "type": "number"')
    return int(value)


def _check_rule(key: str, value: object, path: str) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if key in _COUNTS and not (whole and 0 <= value <= MAX_COUNT):  # type: ignore[operator]
        raise _wrong(path, f"must be a whole number from 0 to {MAX_COUNT}, got {value!r}")
    if key == "uniqueItems" and not isinstance(value, bool):
        raise _wrong(path, f"must be true or false, got {value!r}")
    if key == "format" and value not in FORMATS:
        raise _wrong(path, f"must be one of {', '.join(FORMATS)}, got {value!r}; say others in the description")


def _weight(value: object, path: str) -> int:
    if not isinstance(value, str):
        raise _wrong(path, f"must be a regular expression, got {value!r}")
    try:
        return weight_of(value)
    except ValueError as error:
        raise _wrong(path, str(error)) from None


def _refuse_others(schema: Mapping[str, Any], known: set[str], path: str) -> None:
    for key in schema.keys() - known - _NOTES:
        raise _wrong(f"{path}.{key}", f"is not supported here: {_INSTEAD.get(key, 'leave it out')}")


def _wrong(path: str, rule: str) -> NodeError:
    return NodeError(f"{path} {rule}")
