"""Items that become one: how their fields and files are put together, and where the item came from.

Merging is deep unless told, as n8n does it: objects member by member, lists element by element.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.nodes.base import Call, Fault, Item
from headrace.nodes.checking import shown, written
from headrace.nodes.parameters import Parameters

#: What cannot be, or is not, in an object: `undefined`.
_EMPTY = (None, "")
_CLASH = "options.clashHandling.values"
_PREFERRED = re.compile(r"preferInput([1-9][0-9]?)")
_MODES = ("deepMerge", "shallowMerge")


@dataclass(frozen=True, slots=True)
class Source:
    """An item, and where it lies."""

    item: Item
    index: int
    port: int

    @property
    def json(self) -> dict[str, Any]:
        """Its fields."""
        found: dict[str, Any] = self.item["json"]
        return found

    @property
    def pair(self) -> dict[str, int]:
        """What `pairedItem` says of it."""
        return {"item": self.index, "input": self.port} if self.port else {"item": self.index}

    def passed(self) -> Item:
        """Return the item as it is, paired with itself."""
        return {**self.item, "pairedItem": self.pair}

    def suffixed(self) -> Source:
        """Return it with the number of its input behind the names of its fields."""
        json = {f"{name}_{self.port + 1}": value for name, value in self.json.items()}
        return replace(self, item={**self.item, "json": json})


@dataclass(frozen=True, slots=True)
class Clash:
    """What happens to fields that several items have."""

    #: The input whose value stays, from 0; None: the last one.
    preferred: int | None = None
    #: Whether nothing was said of it.
    usual: bool = True
    suffix: bool = False
    deep: bool = True
    #: Whether null and empty texts give way to other values.
    fill: bool = False


def clash_of(at: Parameters) -> Clash:
    """Return what parameters say of clashes."""
    word = at.text(f"{_CLASH}.resolveClash")
    found = _PREFERRED.fullmatch(word)
    return Clash(
        preferred=int(found[1]) - 1 if found else None,
        usual=not word,
        suffix=word == "addSuffix",
        deep=at.one_of(f"{_CLASH}.mergeMode", _MODES, _MODES[0]) == _MODES[0],
        fill=at.flag(f"{_CLASH}.overrideEmpty"),
    )


def check_clash(parameters: Mapping[str, Any], inputs: int) -> list[Fault]:
    """Return what is wrong with what parameters say of clashes."""
    word = written(parameters, f"{_CLASH}.resolveClash", "")
    allowed = ("addSuffix", "preferLast", *(f"preferInput{number + 1}" for number in range(inputs)))
    faults = []
    if word not in ("", *allowed):
        faults.append(Fault(f"{_CLASH}.resolveClash", f"must be one of {', '.join(allowed)}, got {shown(word)}"))
    mode = written(parameters, f"{_CLASH}.mergeMode", _MODES[0])
    if mode not in _MODES:
        faults.append(Fault(f"{_CLASH}.mergeMode", f"must be one of {', '.join(_MODES)}, got {shown(mode)}"))
    return faults


def sources_of(call: Call, ports: int) -> list[list[Source]]:
    """Return the items of each input; a port that nothing leads to has none."""
    found = [*call.inputs, *([] for _ in range(ports - len(call.inputs)))]
    return [[Source(item, index, port) for index, item in enumerate(items)] for port, items in enumerate(found)]


def combined(sources: Sequence[Source], clash: Clash) -> Item:
    """Return the one item that several become; those behind come over those in front, one may stand there twice."""
    sources = [source.suffixed() for source in sources] if clash.suffix else sources
    json: dict[str, Any] = {}
    binary: dict[str, Any] = {}
    pairs: list[dict[str, int]] = []
    for source in sources:
        json = merged(json, source.json, clash)
        binary |= source.item.get("binary") or {}
        pairs += [source.pair] if source.pair not in pairs else []
    item: Item = {"json": json, "pairedItem": pairs}
    return {**item, "binary": binary} if binary else item


def merged(under: Mapping[str, Any], over: Mapping[str, Any], clash: Clash) -> dict[str, Any]:
    """Return an object with the members of both, those of the second over those of the first.

    >>> merged({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}, "c": None}, Clash(fill=True))
    {'a': {'b': 1, 'd': 3}, 'c': 2}
    """
    made = dict(under)
    for name, value in over.items():
        if clash.fill and name in made and value in _EMPTY:
            continue
        made[name] = _merged_value(made.get(name), value, clash) if clash.deep else value
    return made


def _merged_value(under: Any, over: Any, clash: Clash) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        return merged(under, over, clash)
    if isinstance(under, list) and isinstance(over, list):
        pairs = merged(dict(enumerate(under)), dict(enumerate(over)), clash)  # type: ignore[arg-type]
        return list(pairs.values())
    return over
