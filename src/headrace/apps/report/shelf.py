"""What stages hand on lies in files of the run; jobs carry marks of them. A process reads each file once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter

from headrace.apps.report.opening import app

T = TypeVar("T")
Mark = Mapping[str, Any]

#: Files that a process keeps: the jobs of a map read the same one in turn.
MOST_KEPT = 16

_kept: OrderedDict[tuple[str, str], Any] = OrderedDict()
_adapters: dict[Any, TypeAdapter[Any]] = {}


async def put(value: Any, kind: Any, **facts: Any) -> dict[str, Any]:
    """Store a value as JSON and return its mark, with `facts` beside it. Equal values have equal marks."""
    mark = await app.files.put(_adapter(kind).dump_json(value))
    _keep(_name(mark, kind), value)
    return {**facts, **mark}


async def get(mark: Mark, kind: type[T]) -> T:
    """Return the value behind a mark, as `kind`. Nobody may change it: others get the same object."""
    name = _name(mark, kind)
    if name not in _kept:
        _keep(name, _adapter(kind).validate_json(await app.files.get(mark)))
    _kept.move_to_end(name)
    value: T = _kept[name]
    return value


def _name(mark: Mark, kind: Any) -> tuple[str, str]:
    return str(mark["$file"]["sha256"]), str(kind)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def _keep(name: tuple[str, str], value: Any) -> None:
    _kept[name] = value
    while len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)
