"""merge as it was in its version 1: eight modes, two inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.nodes import checking, fields
from headrace.nodes.base import Fault, Item, Items, NodeError
from headrace.nodes.conversions import text_of
from headrace.nodes.merging import Clash, Source, combined
from headrace.nodes.parameters import Parameters

_SHALLOW = Clash(deep=False)
_JOINS = ("inner", "left", "outer")
_OVERWRITES = ("always", "blank", "undefined")
_KEYED = ("keepKeyMatches", "mergeByKey", "removeKeyMatches")
_MAX_ITEMS = 1_000_000

Side = Sequence[Source]


def _append(at: Parameters, left: Side, right: Side) -> Items:
    return [source.passed() for source in (*left, *right)]


def _by_index(at: Parameters, left: Side, right: Side) -> Items:
    join = at.one_of("join", _JOINS, "left")
    count = {"inner": min(len(left), len(right)), "left": len(left), "outer": max(len(left), len(right))}[join]
    found = [[side[index] for side in (left, right) if index < len(side)] for index in range(count)]
    return [combined(both, _SHALLOW) if len(both) > 1 else both[0].passed() for both in found]


def _all_pairs(at: Parameters, left: Side, right: Side) -> Items:
    if len(left) * len(right) > _MAX_ITEMS:
        raise NodeError(f"{len(left)} × {len(right)} items are more than {_MAX_ITEMS} combinations: filter them first")
    return [combined((one, other), _SHALLOW) for one in left for other in right]


def _passed_through(at: Parameters, left: Side, right: Side) -> Items:
    first = at.one_of("output", ("input1", "input2"), "input1") == "input1"
    return [source.passed() for source in (left if first else right)]


def _one_empty(at: Parameters, left: Side, right: Side) -> Items:
    return [{"json": {}, "pairedItem": [source.pair for source in left]}]


def _by_key(at: Parameters, left: Side, right: Side) -> Items:
    """Return the items of the first input, with the fields of the last item of the second that has the same key."""
    mode, name, other = at.text("mode"), at.text("propertyName1"), at.text("propertyName2")
    known = {key: source for source in right if (key := _key(source, other))}
    out: Items = []
    for source in left:
        match = known.get(_key(source, name) or "")
        if mode == "mergeByKey" and _is_keyed(source, name):
            out.append(source.passed() if match is None else _overwritten(source, match, other, at))
        elif mode == ("removeKeyMatches" if match is None else "keepKeyMatches"):
            out.append(source.passed())
    return out


def _key(source: Source, name: str) -> str | None:
    value = fields.get(source.json, name)
    return text_of(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _is_keyed(source: Source, name: str) -> bool:
    value = fields.get(source.json, name, default=fields.MISSING)
    return value is None or _key(source, name) is not None


def _overwritten(source: Source, match: Source, name: str, at: Parameters) -> Item:
    """Return an item with the fields of another, where `overwrite` lets them."""
    when = at.one_of("overwrite", _OVERWRITES, "always")
    json = dict(source.json)
    for field, value in match.json.items():
        blank = field not in json or (when == "blank" and json[field] in (None, ""))
        if field != name and (when == "always" or blank):
            json[field] = value
    return {**source.passed(), "json": json}


_MODES: dict[str, Callable[[Parameters, Side, Side], Items]] = {
    "append": _append,
    "mergeByIndex": _by_index,
    "multiplex": _all_pairs,
    "passThrough": _passed_through,
    "wait": _one_empty,
    **dict.fromkeys(_KEYED, _by_key),
}


def check(parameters: Mapping[str, Any]) -> list[Fault]:
    """Return modes that there are not, and keys that are not named.

    >>> check({"mode": "append"})
    []
    """
    faults = checking.one_of(parameters, "mode", _MODES, default="append", instead={})
    faults += checking.one_of(parameters, "join", _JOINS, default="left", instead={})
    faults += checking.one_of(parameters, "overwrite", _OVERWRITES, default="always", instead={})
    if parameters.get("mode") in _KEYED:
        faults += checking.named(parameters, "propertyName1", "a field of the first input")
        faults += checking.named(parameters, "propertyName2", "a field of the second input")
    return faults


def run(at: Parameters, sources: Sequence[Side]) -> Items:
    """Return the items that those of two inputs become. Raises NodeError, InvalidInputError."""
    mode = at.one_of("mode", tuple(_MODES), "append")
    return _MODES[mode](at, sources[0], sources[1])
