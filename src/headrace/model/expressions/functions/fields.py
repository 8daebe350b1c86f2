"""Fields of elements by their paths, and what elements are compared by."""

from __future__ import annotations

from typing import Any

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.moments import Moment
from headrace.model.expressions.searching import check_size
from headrace.model.expressions.values import is_number, kind, need_text, number
from headrace.model.expressions.writing import json_text


def path_of(field: Any) -> list[str]:
    """Return the steps of a dotted path."""
    steps = need_text(field)[:1_000].split(".")
    if len(steps) > 16:
        raise Fault("needs the name of a field of at most 16 steps")
    return steps


def at_path(value: Any, path: list[str]) -> Any:
    """Return what is at a path; null where nothing is."""
    for step in path:
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is list and step.isascii() and step.isdigit() and len(step) < 10:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value


def sort_key(run: Run, value: Any) -> tuple[int, Any]:
    """Return what an element is sorted by."""
    if value is None:
        return 3, 0
    if is_number(value) or type(value) is bool:
        return 0, number(value)
    if type(value) is str:
        return 1, value
    raise Fault(f"sorts numbers and texts, got {kind(value)}: name a field to sort by")


def identity(run: Run, value: Any) -> Any:
    """Return what is equal for equal values, and no others."""
    if type(value) is list or type(value) is dict:
        # Members in another order are the same object.
        return kind(value), json_text(run, value, ordered=True)
    if type(value) is str:
        check_size(value)
    return kind(value), value.iso if type(value) is Moment else value
