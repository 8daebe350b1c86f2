"""removeDuplicates: of items that are equal, the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.nodes import checking, fields
from headrace.nodes.base import Call, Fault, Items, Named, NodeError, ours
from headrace.nodes.conversions import fingerprint
from headrace.nodes.parameters import Parameters

_COMPARES = ("allFields", "allFieldsExcept", "selectedFields")
_NAMES = {"allFieldsExcept": "fieldsToExclude", "selectedFields": "fieldsToCompare"}
_WITHIN = "removeDuplicateInputItems"
_ELSEWHERE = {
    "removeItemsSeenInPreviousExecutions": (
        f'runs remember nothing of each other: use "{_WITHIN}", and ask where the items come from for new ones only'
    ),
    "clearDeduplicationHistory": "runs remember nothing of each other: remove this node",
}


class RemoveDuplicatesType(Named):
    """Compares all fields, all but some, or some; numbers are equal by value, texts by each character."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return operations over past runs, and fields that are not named."""
        found = checking.one_of(parameters, "operation", (_WITHIN,), default=_WITHIN, instead=_ELSEWHERE)
        found += checking.one_of(parameters, "compare", _COMPARES, default=_COMPARES[0], instead={})
        path = None if found else _NAMES.get(checking.written(parameters, "compare", _COMPARES[0]))
        return found + (checking.named(parameters, path, "fields, such as email") if path else [])

    def run(self, call: Call) -> list[Items]:
        """Return the items that are not equal to an earlier one."""
        at = call.at()
        chosen = _Chosen.of(at)
        only = at.flag("options.removeOtherFields")
        seen: set[str] = set()
        kept: Items = []
        for index, item in enumerate(call.items):
            part = chosen.part(item.get("json", {}), index)
            key = fingerprint(part)
            if key not in seen:
                seen.add(key)
                kept.append({**item, "json": part if only else item.get("json", {}), "pairedItem": {"item": index}})
        return [kept]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The fields that are compared."""

    compare: str
    names: tuple[str, ...]
    dots: bool

    @classmethod
    def of(cls, at: Parameters) -> _Chosen:
        """Return what the parameters ask for."""
        compare = at.one_of("compare", _COMPARES, _COMPARES[0])
        path = _NAMES.get(compare)
        return cls(compare, tuple(at.names(path)) if path else (), not at.flag("options.disableDotNotation"))

    def part(self, data: Mapping[str, Any], index: int) -> dict[str, Any]:
        """Return the part of an item that is compared. Raises NodeError where a named field is missing."""
        if self.compare != "selectedFields":
            part = dict(data)
            for name in self.names:
                part = fields.drop(part, name, dots=self.dots)
            return part
        part = {}
        for name in self.names:
            if not fields.has(data, name, dots=self.dots):
                raise NodeError(f"item {index} has no field {name!r} to compare: name another one, or set it before")
            part = fields.put(part, name, fields.get(data, name, dots=self.dots), dots=self.dots)
        return part


TYPE = RemoveDuplicatesType(
    "removeDuplicates",
    ours("removeDuplicates", "n8n-nodes-base.removeDuplicates"),
    (1, 2),
    "keeps the first of equal items",
)
