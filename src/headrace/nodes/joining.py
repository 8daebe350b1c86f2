"""Items of two inputs that have equal values in some fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.nodes import fields
from headrace.nodes.conversions import fingerprint, parsed, same, text_of, truth_of
from headrace.nodes.merging import Source

#: The field of the first input and that of the second.
Pair = tuple[str, str]
_MISSING = fields.MISSING


@dataclass(frozen=True, slots=True)
class How:
    """How items are compared."""

    pairs: Sequence[Pair]
    dots: bool = True
    #: Whether values of different types can be equal: 3 and "3".
    fuzzy: bool = False
    first_only: bool = False


@dataclass(slots=True)
class Joined:
    """What came of it, all in order of the inputs."""

    matched: list[tuple[Source, list[Source]]] = field(default_factory=list)
    matched_right: list[Source] = field(default_factory=list)
    left: list[Source] = field(default_factory=list)
    right: list[Source] = field(default_factory=list)


def join(left: Sequence[Source], right: Sequence[Source], how: How) -> Joined:
    """Return which items of two inputs have equal values in all pairs of fields; one without a field has no match."""
    find, found = _finder(right, how), Joined()
    used: set[int] = set()
    # Items with the same values share one list of matches: thousands of them must not make millions of entries.
    known: dict[tuple[str, ...], list[Source]] = {}
    for source in left:
        values = _values(source, [pair[0] for pair in how.pairs], how)
        key = _key(values, fingerprint)
        if key not in known:
            places = find(values)
            used.update(places)
            known[key] = [right[place] for place in places]
        if known[key]:
            found.matched.append((source, known[key]))
        else:
            found.left.append(source)
    for place, source in enumerate(right):
        (found.matched_right if place in used else found.right).append(source)
    return found


def _finder(right: Sequence[Source], how: How) -> Callable[[list[Any]], list[int]]:
    """Return what tells the places of the items that have the same values as one of the first input."""
    rough = _rough if how.fuzzy else fingerprint
    second = [_values(source, [pair[1] for pair in how.pairs], how) for source in right]
    places: dict[tuple[str, ...], list[int]] = {}
    for place, values in enumerate(second):
        places.setdefault(_key(values, rough), []).append(place)

    def find(values: list[Any]) -> list[int]:
        near = [] if _MISSING in values else places.get(_key(values, rough), [])
        if how.fuzzy:
            near = [place for place in near if all(map(alike, values, second[place]))]
        return near[:1] if how.first_only else near

    return find


def _values(source: Source, names: Sequence[str], how: How) -> list[Any]:
    return [fields.get(source.json, name, dots=how.dots, default=_MISSING) for name in names]


def _key(values: Sequence[Any], key: Callable[[Any], str]) -> tuple[str, ...]:
    return tuple("missing" if value is _MISSING and key is fingerprint else key(value) for value in values)


def _is_nothing(value: Any) -> bool:
    return value is _MISSING or value is None or value in ("", [])


def _rough(value: Any) -> str:
    """Return a text that is equal for values that are alike, and for some others."""
    if _is_nothing(value):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str):
        return text_of(value) if not isinstance(value, dict | list) else fingerprint(value)
    found = _data(value)
    if found is not None:
        return _rough(found)
    return str(int(value.lower() == "true")) if value.lower() in ("true", "false") else value


def _data(text: str) -> Any:
    if text[:1] not in ("{", "[", " ", "\n", "\t", "\r"):
        return None
    found = parsed(text, dict)
    return parsed(text, list) if found is None else found


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal but for their types: 3 and "3", true and 1, nothing in its many forms.

    >>> alike(3, "3"), alike("1", True), alike(None, ""), alike('{"a": 1}', {"a": 1}), alike("a", "b"), alike("1", 2)
    (True, True, True, True, False, False)
    """
    if _is_nothing(one) or _is_nothing(other):
        return _is_nothing(one) and _is_nothing(other)
    kinds = {type(one), type(other)}
    if len(kinds) == 1 or kinds == {int, float}:
        return same(one, other)
    if bool in kinds:
        return truth_of(one) is not None and truth_of(one) is truth_of(other)
    if dict in kinds or list in kinds:
        texts = [value for value in (one, other) if isinstance(value, str)]
        data = [value for value in (one, other) if isinstance(value, dict | list)]
        return len(texts) == len(data) == 1 and same(_data(texts[0]), data[0])
    return text_of(one) == text_of(other)
