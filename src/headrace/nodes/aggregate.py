"""aggregate: the fields of many items become lists in one, or in one for each group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking, fields
from headrace.nodes.base import Call, Fault, Item, Items, Named, NodeError, ours
from headrace.nodes.parameters import Parameters

_KINDS = ("aggregateIndividualFields", "aggregateAllItemData")
_INCLUDES = ("allFields", "specifiedFields", "allFieldsExcept")
_LISTS = "fieldsToAggregate.fieldToAggregate"


class AggregateType(Named):
    """Makes one item of all, or one for each combination of values of `options.groupByFields`."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a wrong kind, or fields that are not named."""
        found = checking.one_of(parameters, "aggregate", _KINDS, default=_KINDS[0], instead={})
        if found:
            return found
        if checking.written(parameters, "aggregate") == "aggregateAllItemData":
            return checking.one_of(parameters, "include", _INCLUDES, default=_INCLUDES[0], instead={})
        rows = checking.written(parameters, _LISTS)
        if isinstance(rows, list) and rows and all(Parameters(row).has("fieldToAggregate") for row in rows):
            return []
        return [Fault(_LISTS, f"must name the fields whose values are listed, got {rows!r}")]

    def run(self, call: Call) -> list[Items]:
        """Return an item for each group; without groups one."""
        at = call.at()
        keys = at.names("options.groupByFields")
        groups = _groups(call.items, keys) if keys else [({}, list(range(len(call.items))))]
        return [[_one(call.items, indices, at, named) for named, indices in groups]]


def _groups(items: Items, keys: list[str]) -> list[tuple[dict[str, Any], list[int]]]:
    """Return the values of each group, and the indices of its items, in the order of their first ones."""
    found: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for index, item in enumerate(items):
        values = [fields.get(item.get("json", {}), key) for key in keys]
        for key, value in zip(keys, values, strict=True):
            if isinstance(value, list | dict):
                raise NodeError(
                    f"options.groupByFields: {key!r} of item {index} is {type(value).__name__}, and groups need texts, "
                    "numbers or truth values: name a field within it"
                )
        found.setdefault(json.dumps(values), (dict(zip(keys, values, strict=True)), []))[1].append(index)
    return list(found.values())


def _one(items: Items, indices: list[int], at: Parameters, named: Mapping[str, Any]) -> Item:
    """Return the item of a group."""
    chosen = [items[index] for index in indices]
    all_data = at.one_of("aggregate", _KINDS, _KINDS[0]) == "aggregateAllItemData"
    made = _all_data(chosen, at) if all_data else _lists(chosen, at)
    data: dict[str, Any] = {}
    dots = all_data or not at.flag("options.disableDotNotation")
    for name, value in [*named.items(), *made.items()]:
        if fields.has(data, name, dots=dots):
            raise NodeError(f"the output field {name!r} is made twice: give one another name")
        data = fields.put(data, name, value, dots=dots or name in named)
    one: Item = {"json": data, "pairedItem": [{"item": index} for index in indices]}
    if at.flag("options.includeBinaries"):
        files = _files(chosen, unique=at.flag("options.keepOnlyUnique"))
        return {**one, "binary": files} if files else one
    return one


def _all_data(items: Items, at: Parameters) -> dict[str, Any]:
    """Return the whole `json` of each item, or some of its fields, in one list; items without any are left out."""
    include = at.one_of("include", _INCLUDES, _INCLUDES[0])
    only = set(at.names("fieldsToInclude")) if include == "specifiedFields" else None
    never = set(at.names("fieldsToExclude")) if include == "allFieldsExcept" else set()
    rows = [_some(item.get("json", {}), only, never) for item in items]
    kept = rows if not only and not never else [row for row in rows if row]
    return {at.text("destinationFieldName", "data") or "data": kept}


def _some(data: Mapping[str, Any], only: set[str] | None, never: set[str]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in never and (not only or name in only)}


def _lists(items: Items, at: Parameters) -> dict[str, Any]:
    """Return a list of the values of each field."""
    dots = not at.flag("options.disableDotNotation")
    made: dict[str, Any] = {}
    for row in at.listed(_LISTS):
        line = Parameters(row if isinstance(row, dict) else {}, field=f"parameters.{_LISTS}")
        source = line.text("fieldToAggregate")
        renamed = line.text("outputFieldName") if line.flag("renameField") else ""
        name = renamed or (source.rpartition(".")[2] if dots else source)
        if not source or name in made:
            raise NodeError(f"{_LISTS}: the output field {name!r} is made twice, or has no source: name each once")
        made[name] = _values(items, source, at, dots)
    return made


def _values(items: Items, source: str, at: Parameters, dots: bool) -> list[Any]:
    keeps, merges = at.flag("options.keepMissing"), at.flag("options.mergeLists")
    found: list[Any] = []
    for item in items:
        value = fields.get(item.get("json", {}), source, dots=dots)
        if isinstance(value, list) and not keeps:
            value = [one for one in value if one is not None]
        if isinstance(value, list) and merges:
            found += value
        elif keeps or value is not None:
            found.append(value)
    return found


def _files(items: Items, *, unique: bool) -> dict[str, Any]:
    """Return the files of all items, with numbers behind names that come again; `unique`: of equal ones the first."""
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for item in items:
        for name, data in (item.get("binary") or {}).items():
            facts = json.dumps([data.get(fact) for fact in ("mimeType", "fileType", "fileSize", "fileExtension")])
            if unique and facts in seen:
                continue
            seen.add(facts)
            found[_free(name, found)] = data
    return found


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Return the name, or the first of name_1, name_2 … that is not taken."""
    number, free = 0, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


TYPE = AggregateType(
    "aggregate",
    ours("aggregate", "n8n-nodes-base.aggregate"),
    (1, 1),
    "makes lists of the fields of many items",
)
