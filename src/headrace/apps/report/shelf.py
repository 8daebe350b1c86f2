"""What stages hand on lies in files of the run; jobs carry marks of them. A process reads each file once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter

from headrace.apps.report.opening import app

T = TypeVar("T")
Mark = Mapping[str, Any]

#: Bytes of files that a process keeps, for the jobs of a map read the same one in turn; as values they take more.
MOST_KEPT = 16 * 1024 * 1024

#: The bytes of each file, and what it holds.
_kept: OrderedDict[tuple[str, str], tuple[int, Any]] = OrderedDict()
_adapters: dict[Any, TypeAdapter[Any]] = {}


async def put(value: Any, kind: Any, **facts: Any) -> dict[str, Any]:
    """Store a value as JSON and return its mark, with `facts` beside it. Equal values have equal marks."""
    mark = await app.files.put(_adapter(kind).dump_json(value))
    _keep(mark, kind, value)
    return {**facts, **mark}


async def get(mark: Mark, kind: type[T]) -> T:
    """Return the value behind a mark, as `kind`. Nobody may change it: others get the same object."""
    name = _name(mark, kind)
    if name not in _kept:
        value: T = _adapter(kind).validate_json(await app.files.get(mark))
        _keep(mark, kind, value)
        return value
    _kept.move_to_end(name)
    kept: T = _kept[name][1]
    return kept


def _name(mark: Mark, kind: Any) -> tuple[str, str]:
    return str(mark["$file"]["sha256"]), str(kind)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def _keep(mark: Mark, kind: Any, value: Any) -> None:
    _kept[_name(mark, kind)] = int(mark["$file"]["bytes"]), value
    while len(_kept) > 1 and sum(size for size, _ in _kept.values()) > MOST_KEPT:
        _kept.popitem(last=False)
