"""splitOut: the elements of a list become items of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from headrace.nodes import checking, fields
from headrace.nodes.base import Call, Fault, Item, Items, Named, NodeError, ours
from headrace.nodes.parameters import Parameters

_INCLUDES = ("noOtherFields", "allOtherFields", "selectedOtherFields")
_BINARY = "$binary"
#: In place of an element, where one of several lists is shorter than another.
_NONE: Any = object()


@dataclass(frozen=True, slots=True)
class _File:
    """A member of an item's `binary`, as an element."""

    name: str
    data: Any


class SplitOutType(Named):
    """Takes lists apart: several side by side, an object into its values, `$binary` into a file for each item.

    Elements that are objects become the item where one field is split and nothing else is included.
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return missing names, or a wrong choice of other fields."""
        found = checking.named(parameters, "fieldToSplitOut", "a field whose list is split, such as orders")
        found += checking.one_of(parameters, "include", _INCLUDES, default=_INCLUDES[0], instead={})
        if checking.written(parameters, "include") == "selectedOtherFields":
            found += checking.named(parameters, "fieldsToInclude", "the other fields to include")
        return found

    def run(self, call: Call) -> list[Items]:
        """Return an item for each element."""
        return [call.each(_split)]


def _split(item: Item, at: Parameters) -> Items:
    dots = not at.flag("options.disableDotNotation")
    sources = [name.removeprefix("$json.") for name in at.names("fieldToSplitOut")]
    targets = at.names("options.destinationFieldName")
    if not sources or (targets and len(targets) != len(sources)):
        raise NodeError(
            f"options.destinationFieldName must have a name for each of the {len(sources)} fields of fieldToSplitOut, "
            f"got {len(targets)}"
        )
    columns = [_elements(item, source, dots) for source in sources]
    spread = len(sources) == 1 and not targets and at.get("include", _INCLUDES[0]) == "noOtherFields"
    others = _others(item.get("json", {}), at, sources, dots)
    made = [_made(row, targets or sources, spread) for row in zip_longest(*columns, fillvalue=_NONE)]
    keeps = item.get("binary") if at.flag("options.includeBinary") else None
    return [_joined(one, others, keeps) for one in made]


def _elements(item: Item, source: str, dots: bool) -> list[Any]:
    """Return what a field is split into: nothing where it is missing, itself where it is no list."""
    if source == _BINARY:
        return [_File(name, data) for name, data in (item.get("binary") or {}).items()]
    value = fields.get(item.get("json", {}), source, dots=dots, default=_NONE)
    if value is _NONE:
        return []
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _made(row: tuple[Any, ...], names: list[str], spread: bool) -> Item:
    made: Item = {"json": {}}
    for name, element in zip(names, row, strict=True):
        if isinstance(element, _File):
            made["binary"] = {**made.get("binary", {}), element.name: element.data}
        elif spread and isinstance(element, dict):
            made["json"] = {**element}
        elif element is not _NONE:
            made["json"][name] = element
    return made


def _others(data: Mapping[str, Any], at: Parameters, sources: list[str], dots: bool) -> dict[str, Any]:
    """Return the other fields that every new item is given."""
    include = at.one_of("include", _INCLUDES, _INCLUDES[0])
    if include == "noOtherFields":
        return {}
    if include == "selectedOtherFields":
        wanted = [name for name in at.names("fieldsToInclude") if fields.has(data, name, dots=dots)]
        return {name: fields.get(data, name, dots=dots) for name in wanted}
    kept = dict(data)
    for source in sources:
        kept = fields.drop(kept, source, dots=dots)
    return kept


def _joined(made: Item, others: Mapping[str, Any], binary: Any) -> Item:
    joined: Item = {**made, "json": {**others, **made["json"]}}
    if binary and "binary" not in joined:
        joined["binary"] = binary
    return joined


TYPE = SplitOutType(
    "splitOut",
    ours("splitOut", "n8n-nodes-base.splitOut"),
    (1, 1),
    "turns the elements of a list into items",
)
