"""How a run begins: with what its starter says, in whichever way that was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.apps.flows.starting import items_of


def start_of(start: Any, node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the input of a run as its trigger `node` is to see it: {"items", "trigger"}.

    An input that names no trigger is items, as `flows run --input` takes them, for the trigger that a flow begins with
    unless told: so it may be started as any other workflow. Raises InvalidInputError for what are no items.

    >>> start_of([{"city": "Ulm"}], {"name": "Go", "entry": True})
    {'items': [{'json': {'city': 'Ulm'}}], 'trigger': 'Go'}
    >>> start_of([{"city": "Ulm"}], {"name": "Hook"})
    {'trigger': None}
    """
    if isinstance(start, Mapping) and {"items", "trigger"} <= start.keys():
        return start
    if not node.get("entry"):
        return {"trigger": None}
    return {"items": [] if start is None else items_of(start), "trigger": node["name"]}
