"""Functions of objects, and JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.functions.listing import Table
from headrace.model.expressions.functions.lists import new_list
from headrace.model.expressions.searching import check_size
from headrace.model.expressions.values import EXACT, need_object, need_text, number, to_whole, width
from headrace.model.expressions.writing import json_text

OBJECTS = Table("Objects and JSON")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _new_object(run: Run, count: int) -> None:
    run.charge(64 + 104 * count)
    run.work(count / 4)


@OBJECTS.listed("keys", "The names of the members.", ("({a: 1, b: 2}).keys()", ["a", "b"]), also=("Object.keys",))
def keys(run: Run, value: Any) -> list[str]:
    """Return its names."""
    new_list(run, len(need_object(value)))
    return list(value)


@OBJECTS.listed("values", "The values of the members.", ("({a: 1, b: 2}).values()", [1, 2]), also=("Object.values",))
def values(run: Run, value: Any) -> list[Any]:
    """Return its values."""
    new_list(run, len(need_object(value)))
    return list(value.values())


@OBJECTS.listed(
    "entries",
    "Lists of the name and the value of each member.",
    ("({a: 1}).entries()", [["a", 1]]),
    also=("Object.entries",),
)
def entries(run: Run, value: Any) -> list[list[Any]]:
    """Return its members."""
    new_list(run, 12 * len(need_object(value)))
    return [list(one) for one in run.each(value.items())]


@OBJECTS.listed(
    "merge",
    "The members of two objects; where both have one, that of the first.",
    ("({a: 1}).merge({a: 2, b: 3})", {"a": 1, "b": 3}),
)
def merge(run: Run, value: Any, other: Any) -> dict[str, Any]:
    """Return the members of both."""
    _new_object(run, len(need_object(value)) + len(need_object(other)))
    added = {name: one for name, one in run.each(other.items()) if name not in value}
    return {**value, **added}


def _name(value: Any) -> str:
    """Return the name of a member. Raises Fault."""
    name = need_text(value)
    check_size(name)
    return name


def _names(run: Run, names: tuple[Any, ...]) -> set[str]:
    given = names[0] if len(names) == 1 and type(names[0]) is list else names
    run.charge(216 + 80 * len(given))
    return {_name(one) for one in run.each(given)}


@OBJECTS.listed("pick", "The object with some of its members alone.", ("({a: 1, b: 2}).pick('a')", {"a": 1}))
def pick(run: Run, value: Any, *names: Any) -> dict[str, Any]:
    """Return some members."""
    chosen = _names(run, names)
    _new_object(run, 2 * len(need_object(value)))
    return {name: one for name, one in run.each(value.items()) if name in chosen}


@OBJECTS.listed(
    "omit", "The object without some of its members.", ("({a: 1, b: 2}).omit('a')", {"b": 2}), also=("removeField",)
)
def omit(run: Run, value: Any, *names: Any) -> dict[str, Any]:
    """Return the other members."""
    left_out = _names(run, names)
    _new_object(run, 2 * len(need_object(value)))
    return {name: one for name, one in run.each(value.items()) if name not in left_out}


@OBJECTS.listed("has", "Whether an object has a member of a name.", ("({a: null}).has('a')", True), also=("hasField",))
def has(run: Run, value: Any, name: Any) -> bool:
    """Return whether it has one."""
    return _name(name) in need_object(value)


@OBJECTS.listed(
    "JSON.stringify",
    "The value as JSON; with a third value, on lines that are moved in by so many blanks.",
    ("JSON.stringify({a: [1, null]})", '{"a":[1,null]}'),
    also=("toJsonString",),
)
def stringify(run: Run, value: Any, replacer: Any = None, indent: Any = 0) -> str:
    """Return JSON."""
    if replacer is not None:
        raise Fault("takes no replacer: give null as its second value")
    return json_text(run, value, min(max(to_whole(indent or 0), 0), 10))


@OBJECTS.listed(
    "JSON.parse",
    "The value that a text is the JSON of.",
    ("JSON.parse('{\"a\": [1]}')", {"a": [1]}),
    also=("parseJson",),
)
def parse(run: Run, text: Any) -> Any:
    """Return what is written as JSON. Its size is estimated first, from above, by the signs in it."""
    text = need_text(text)
    check_size(text)
    run.charge(_estimate(text))
    run.work(len(text) / 8)
    try:
        made = json.loads(text, parse_int=_whole, parse_float=_number, parse_constant=_refused)
        if _SURROGATE.search(text):
            json.dumps(made, ensure_ascii=False).encode()
    except RecursionError:
        raise Fault("needs JSON that is not nested so deeply") from None
    except UnicodeEncodeError:
        raise Fault("needs JSON without halves of surrogate pairs") from None
    except ValueError as error:
        raise Fault(f"needs JSON: {str(error)[:100]}") from None
    return made


def _estimate(text: str) -> int:
    """Return how much memory the value of a JSON text takes at most."""
    lists, objects, members = text.count("["), text.count("{"), text.count(":")
    again = 8 if _SURROGATE.search(text) else 1
    return (
        64 * lists
        + 240 * objects
        + 110 * members
        + 48 * text.count(",")
        + 40 * text.count('"')
        + (again + 1) * len(text) * width(text)
    )


def _whole(digits: str) -> float:
    if len(digits) <= 18:
        return int(digits)
    return _number(digits)


def _number(digits: str) -> float:
    if len(digits) > 400:
        raise ValueError("a number has too many digits")
    try:
        value = float(digits)
        return number(value) if abs(value) <= EXACT or value in (float("inf"), float("-inf")) else value
    except Fault as fault:
        raise ValueError(fault.rule) from None


def _refused(word: str) -> float:
    raise ValueError(f"{word} is no number")
