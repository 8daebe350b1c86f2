"""What nodes that ask a model have in common: how they are told which model, and how long its answer may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from headrace.nodes.base import Fault, Item
from headrace.nodes.checking import is_expression, whole, written
from headrace.nodes.parameters import Parameters


class Manner(TypedDict):
    """How a model is asked."""

    model: str | None
    max_tokens: int | None
    temperature: float


def manner(at: Parameters) -> Manner:
    """Return `model`, `maxTokens` and `temperature`; these may stand below `options` too. Raises InvalidInputError."""
    most = _place(at, "maxTokens")
    return {
        "model": at.text(_place(at, "model")) or None,
        "max_tokens": at.whole(most, 0, least=1) if at.get(most) not in (None, "") else None,
        "temperature": at.number(_place(at, "temperature"), 0.0),
    }


def check_manner(parameters: Mapping[str, Any]) -> list[Fault]:
    """Return what of them cannot be."""
    found = []
    for path in ("maxTokens", "options.maxTokens"):
        found += whole(parameters, path, least=1) if written(parameters, path) != "" else []
    for path in ("temperature", "options.temperature"):
        value = written(parameters, path, 0)
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2
        if not number and not is_expression(value):
            found.append(Fault(path, f"must be a number from 0 to 2, got {value!r}"))
    return found


def check_text(parameters: Mapping[str, Any], path: str, what: str) -> list[Fault]:
    """Return a fault where no text is written; an expression may be one."""
    value = written(parameters, path)
    return [] if isinstance(value, str) and value.strip() else [Fault(path, f"must be {what}, got {value!r}")]


def with_json(item: Item, json: dict[str, Any]) -> Item:
    """Return an item with other JSON, and the binary data that it has."""
    return {"json": json, **({"binary": item["binary"]} if "binary" in item else {})}


def _place(at: Parameters, name: str) -> str:
    return f"options.{name}" if at.has(f"options.{name}") and not at.has(name) else name
