"""How a run begins: with what its starter says, in whichever way that was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import InvalidInputError
from headrace.apps.flows.starting import items_of


def start_of(start: Any, node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the input of a run as its trigger `node` is to see it: {"items", "trigger"}.

    An input that names no trigger is items, as `flows run --input` takes them, for the trigger that a flow begins with
    unless told (`entry` names all there are): so it may be started as any other workflow. Raises InvalidInputError for
    what are no items, and for a trigger that there is not.

    >>> start_of([{"city": "Ulm"}], {"name": "Go", "entry": ["Go", "Hook"]})
    {'items': [{'json': {'city': 'Ulm'}}], 'trigger': 'Go'}
    >>> start_of([{"city": "Ulm"}], {"name": "Hook"})
    {'trigger': None}
    """
    entry = node.get("entry")
    if not (isinstance(start, Mapping) and {"items", "trigger"} <= start.keys()):
        if not entry:
            return {"trigger": None}
        return {"items": [] if start is None else items_of(start), "trigger": node["name"]}
    if entry and start["trigger"] not in (None, *entry):
        raise InvalidInputError("input.trigger", f"must be one of {', '.join(entry)}", start["trigger"])
    if start["trigger"] != node["name"]:
        return {"trigger": None}
    # What another flow hands over is of the same run: its files are, too.
    return start if node.get("inner") else {"items": items_of(start["items"]), "trigger": node["name"]}
