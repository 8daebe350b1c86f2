"""sort: items in the order of their fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking, fields
from headrace.nodes.base import Call, Fault, Items, Named, NodeError, ours
from headrace.nodes.pairing import passed
from headrace.nodes.parameters import Parameters

_KINDS = ("simple", "random")
_CODE = {"code": 'flows have no code; use "simple" with a field that a set node before it computes'}
_ORDERS = ("ascending", "descending")
_ROWS = "sortFieldsUi.sortField"


class SortType(Named):
    """Sorts by fields: missing ones last, else null, truth values, numbers, texts (without regard to case), others.

    "random" is a shuffle that stays the same for the same items: their order is that of a hash of each and its place,
    so that a node that is run again gives what it gave before.
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a wrong kind, or fields that are not named."""
        found = checking.one_of(parameters, "type", _KINDS, default=_KINDS[0], instead=_CODE)
        if found or checking.written(parameters, "type") == "random":
            return found
        rows = checking.written(parameters, _ROWS)
        if not isinstance(rows, list) or not rows:
            return [Fault(_ROWS, f"must name the fields to sort by, got {checking.shown(rows)}")]
        return [fault for index, row in enumerate(rows) for fault in _check_row(row, f"{_ROWS}[{index}]")]

    def run(self, call: Call) -> list[Items]:
        """Return the items in their order."""
        at = call.at()
        order = list(range(len(call.items)))
        if at.one_of("type", _KINDS, _KINDS[0]) == "random":
            return [passed(call.items, sorted(order, key=lambda index: _digest(call.items, index)))]
        # From the last field to the first: sorting keeps the order of equal ones.
        for row in reversed(at.listed(_ROWS)):
            order = _by_field(call.items, order, at, row)
        return [passed(call.items, order)]


def _check_row(row: object, path: str) -> list[Fault]:
    if not isinstance(row, dict) or not isinstance(row.get("fieldName"), str) or not row["fieldName"]:
        return [Fault(path, f"must have a fieldName, got {checking.shown(row)}")]
    order = row.get("order", _ORDERS[0])
    if order in _ORDERS or checking.is_expression(order):
        return []
    return [Fault(f"{path}.order", f"must be one of {', '.join(_ORDERS)}, got {checking.shown(order)}")]


def _by_field(items: Items, order: list[int], at: Parameters, row: Mapping[str, Any]) -> list[int]:
    line = Parameters(row, field=f"parameters.{_ROWS}")
    name, dots = line.text("fieldName"), not at.flag("options.disableDotNotation")
    down = line.one_of("order", _ORDERS, _ORDERS[0]) == "descending"
    values = [fields.get(item.get("json", {}), name, dots=dots, default=fields.MISSING) for item in items]
    if order and all(value is fields.MISSING for value in values):
        fix = ", or leave options.disableDotNotation off" if "." in name and not dots else ""
        raise NodeError(f"no item has the field {name!r}: name another one{fix}")
    there = [index for index in order if values[index] is not fields.MISSING]
    gone = [index for index in order if values[index] is fields.MISSING]
    return sorted(there, key=lambda index: rank(values[index]), reverse=down) + gone


def rank(value: Any) -> tuple[int, Any]:
    """Return what a value is sorted by: values of one type by themselves, the types in an order of their own.

    >>> sorted(["b", 10, None, "A", 2, True], key=rank)
    [None, True, 2, 10, 'A', 'b']
    """
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, value
    if isinstance(value, str):
        return 3, value.lower()
    return 4, json.dumps(value, sort_keys=True)


def _digest(items: Items, index: int) -> bytes:
    text = json.dumps([items[index].get("json", {}), index, len(items)], sort_keys=True)
    return hashlib.sha256(text.encode()).digest()


TYPE = SortType("sort", ours("sort", "n8n-nodes-base.sort"), (1, 1), "sorts items by their fields")
