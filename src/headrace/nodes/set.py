"""set: gives items fields of their own, beside those that they have or in place of them.

Versions 1 and 2 have `values` by type and `keepOnlySet`; version 3 has `fields`, 3.3 `assignments`, each typed, or the
JSON of the whole item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.nodes import checking, fields
from headrace.nodes.base import Call, Fault, Item, Items, Named, ours
from headrace.nodes.conversions import parsed, text_of
from headrace.nodes.parameters import Parameters
from headrace.nodes.set_values import KINDS, filled, first_value, json_object, typed

_MODES = ("manual", "raw")
_INCLUDES = ("all", "none", "selected", "except")
#: The types of version 1 in the order in which they are set, with the value where none is written.
_FIRST: dict[str, Any] = {"boolean": False, "number": 0, "string": ""}
_FIRST_NAME = "propertyName"
#: Values of `fields` where none is written.
_USUAL = {"stringValue": "", "numberValue": "", "booleanValue": "true", "arrayValue": "", "objectValue": "{}"}


class SetType(Named):
    """Every item becomes one item."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return unknown types and modes, and JSON that is none."""
        if version < 3:
            return _check_first(checking.written(parameters, "values", {}))
        mode = checking.one_of(parameters, "mode", _MODES, default="manual", instead={})
        include = checking.one_of(parameters, "include", _INCLUDES, default="all", instead={})
        raw = checking.written(parameters, "mode", "manual") == "raw"
        return mode + include + (_check_json(parameters) if raw else _check_fields(parameters, version))

    def run(self, call: Call) -> list[Items]:
        """Return the items with their new fields."""
        make = _made if call.version >= 3 else _made_first
        return [call.each(lambda item, at: make(item, at, call.version))]


def _check_first(values: Any) -> list[Fault]:
    if not isinstance(values, Mapping):
        return [Fault("values", f"must be lists by type: {', '.join(_FIRST)}")]
    faults = [Fault(f"values.{kind}", f"must be one of {', '.join(_FIRST)}") for kind in values if kind not in _FIRST]
    for kind in _FIRST:
        found = values.get(kind, [])
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            faults.append(Fault(f"values.{kind}", 'must be a list of objects such as {"name": "a", "value": 1}'))
    return faults


def _check_json(parameters: Mapping[str, Any]) -> list[Fault]:
    value = parameters.get("jsonOutput")
    if value is None:
        return [Fault("jsonOutput", "must be the JSON of an object, as mode is raw")]
    if isinstance(value, dict) or checking.is_expression(value):
        return []
    if isinstance(value, str) and parsed(value, dict) is not None:
        return []
    return [Fault("jsonOutput", f"must be the JSON of an object, got {checking.shown(value)}")]


def _entries(parameters: Mapping[str, Any], version: float) -> tuple[str, list[Any]]:
    path = "assignments.assignments" if version >= 3.3 else "fields.values"
    found = checking.written(parameters, path, [])
    return path, found if isinstance(found, list) else [found]


def _check_fields(parameters: Mapping[str, Any], version: float) -> list[Fault]:
    path, entries = _entries(parameters, version)
    faults = []
    for number, entry in enumerate(entries):
        kind = entry.get("type", "stringValue") if isinstance(entry, Mapping) else None
        if not isinstance(kind, str) or kind.removesuffix("Value") not in KINDS:
            message = f"must be one of {', '.join(KINDS)}, got {checking.shown(kind)}"
            fix = "binary data is kept or left out as a whole"
            faults.append(Fault(f"{path}[{number}].type", f"{message}: {fix}"))
    return faults


def _made(item: Item, at: Parameters, version: float) -> Item:
    """Return the item that an item becomes, from version 3 on."""
    include = at.one_of("include", _INCLUDES, "all")
    if version >= 3.3 and not at.flag("includeOtherFields"):
        include = "none"
    dots = at.flag("options.dotNotation", True)
    json = _included(item["json"], at, include, dots)
    raw = at.get("mode", "manual") == "raw"
    for name, value in json_object(at, "jsonOutput").items() if raw else dict(_assigned(at, version)).items():
        json = fields.put(json, name, value, dots=dots)
    return _with_binary({"json": json}, item, keep=_keeps_binary(at, version, include))


def _keeps_binary(at: Parameters, version: float, include: str) -> bool:
    if version < 3.4:
        return at.flag("options.includeBinary")
    return include != "none" and not at.flag("options.stripBinary")


def _with_binary(made: Item, item: Item, *, keep: bool) -> Item:
    return {**made, "binary": dict(item["binary"])} if keep and item.get("binary") else made


def _included(json: Mapping[str, Any], at: Parameters, include: str, dots: bool) -> dict[str, Any]:
    """Return the fields that the new item has of the old one."""
    if include == "all":
        return dict(json)
    found: dict[str, Any] = {} if include in ("none", "selected") else dict(json)
    for name in at.names("includeFields") if include == "selected" else ():
        value = fields.get(json, name, dots=dots, default=fields.MISSING)
        if value is not fields.MISSING:
            found = fields.put(found, name.rsplit(".", 1)[-1] if dots else name, value, dots=dots)
    for name in at.names("excludeFields") if include == "except" else ():
        found = fields.drop(found, name, dots=dots)
    return found


def _assigned(at: Parameters, version: float) -> Iterator[tuple[str, Any]]:
    """Yield the fields that are set one by one, as their types."""
    path, entries = _entries(at.raw, version)
    loose = at.flag("options.ignoreConversionErrors")
    for number, entry in enumerate(entries):
        one = Parameters(entry, at.scope, f"{at.field}.{path}[{number}]")
        kind = one.text("type", "stringValue")
        value = "value" if version >= 3.3 else kind
        if kind == "objectValue" and isinstance(entry.get(value), str):
            found: Any = filled(one, value)
        else:
            found = one.get(value, _USUAL.get(value))
        name = one.text("name")
        yield name, typed(found, kind.removesuffix("Value"), version, loose=loose, field=f"{one.field}.{value}")


def _made_first(item: Item, at: Parameters, version: float) -> Item:
    """Return the item that an item becomes, in versions 1 and 2."""
    alone = at.flag("keepOnlySet")
    dots = at.flag("options.dotNotation", True)
    json: dict[str, Any] = {} if alone else dict(item["json"])
    for kind, usual in _FIRST.items():
        for entry in at.objects(f"values.{kind}"):
            name = text_of(entry.get("name", _FIRST_NAME))
            json = fields.put(json, name, first_value(entry.get("value", usual), kind, version), dots=dots)
    return _with_binary({"json": json}, item, keep=not alone)


TYPE = SetType("set", ours("set", "n8n-nodes-base.set"), (1, 3.4), "sets fields of items")
