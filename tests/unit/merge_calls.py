"""Calls of merge, and two inputs that have something in common."""

from __future__ import annotations

from typing import Any

from headrace.nodes.merge import TYPE
from tests.unit.node_calls import rules, run_type

PEOPLE = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}, {"id": 3, "name": "Cy"}]
CITIES = [{"id": 2, "city": "Oslo"}, {"id": 9, "city": "Rome"}, {"id": 2, "city": "Bern"}]


async def merged(parameters: dict[str, Any], *inputs: Any, version: float = 3.2) -> list[dict[str, Any]]:
    """Return the items that come out."""
    assert rules(TYPE, parameters, version) == []
    (out,) = await run_type(TYPE, parameters, *inputs, version=version)
    return out


def pairs(items: list[dict[str, Any]]) -> list[list[tuple[int, int]]]:
    """Return of each item which items it came from: (input, index)."""
    found = [item["pairedItem"] if isinstance(item["pairedItem"], list) else [item["pairedItem"]] for item in items]
    return [[(one.get("input", 0), one["item"]) for one in each] for each in found]


def by(name: str, **more: Any) -> dict[str, Any]:
    """Return parameters of version 3: combine by position, fields or all."""
    return {"mode": "combine", "combineBy": f"combineBy{name}" if name != "All" else "combineAll", **more}


def clash(word: str = "", **more: Any) -> dict[str, Any]:
    """Return options that say what happens to fields with the same name."""
    return {"clashHandling": {"values": {"resolveClash": word, **more} if word else more}}
