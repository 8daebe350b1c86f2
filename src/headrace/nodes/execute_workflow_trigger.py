"""executeWorkflowTrigger: begins a flow that another flow runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Item, Items, Named, NodeError, Shape, ours
from headrace.nodes.field_types import KINDS, convert, kind_of
from headrace.nodes.parameters import Parameters

_SOURCES = ("workflowInputs", "jsonExample", "passthrough")


class ExecuteWorkflowTriggerType(Named):
    """Gives the items it is called with: as they are, or only the fields that are named, each of its type."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a wrong source of fields, unknown types, or an example that is no JSON object."""
        found = checking.one_of(parameters, "inputSource", _SOURCES, default=_SOURCES[0], instead={})
        if found or _source(parameters, version) != "jsonExample":
            return found + _check_types(parameters)
        return [] if _example(parameters) is not None else [Fault("jsonExample", "must be the text of a JSON object")]

    def run(self, call: Call) -> list[Items]:
        """Return the items."""
        given = call.given or [{"json": {}}]
        fields = _fields(call.parameters, call.version)
        if not fields:
            return [given]
        at = Parameters(call.parameters)
        lenient, converts = at.flag("inputOptions.ignoreTypeErrors"), at.flag("inputOptions.attemptToConvertTypes")
        return [[_fitted(item, fields, converts=converts, lenient=lenient) for item in given]]


def _source(parameters: Mapping[str, Any], version: float) -> str:
    """Version 1 always passes everything on."""
    return str(parameters.get("inputSource", _SOURCES[0])) if version >= 1.1 else "passthrough"


def _fields(parameters: Mapping[str, Any], version: float) -> dict[str, str]:
    """Return the type of each field; none where everything is passed on."""
    source = _source(parameters, version)
    if source == "jsonExample":
        return {name: kind_of(value) for name, value in (_example(parameters) or {}).items()}
    if source == "passthrough":
        return {}
    rows = [Parameters(row) for row in Parameters(parameters).listed("workflowInputs.values") if isinstance(row, dict)]
    return {row.text("name"): row.text("type", "string") for row in rows if row.text("name")}


def _example(parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    value = parameters.get("jsonExample")
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _check_types(parameters: Mapping[str, Any]) -> list[Fault]:
    rows = checking.written(parameters, "workflowInputs.values") or []
    kinds = [row.get("type", "string") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else [None]
    wrong = next((kind for kind in kinds if kind not in KINDS), None)
    if all(kind in KINDS for kind in kinds):
        return []
    return [Fault("workflowInputs.values", f"must have types of {', '.join(KINDS)}, got {wrong!r}")]


def _fitted(item: Item, fields: Mapping[str, str], *, converts: bool, lenient: bool) -> Item:
    found: dict[str, Any] = {}
    for name, kind in fields.items():
        value = item.get("json", {}).get(name)
        fits = value is None or kind in ("any", kind_of(value))
        if not fits and converts:
            value, fits = convert(value, kind)
        if not fits and not lenient:
            raise NodeError(
                f"the field {name!r} must be of type {kind}, got {kind_of(value)}: {str(value)[:60]}; the calling flow "
                "must give one, or inputOptions.attemptToConvertTypes must be true"
            )
        found[name] = value
    return {**item, "json": found}


TYPE = ExecuteWorkflowTriggerType(
    "executeWorkflowTrigger",
    ours("executeWorkflowTrigger", "n8n-nodes-base.executeWorkflowTrigger"),
    (1, 1.1),
    "begins a flow that another flow runs",
    Shape.TRIGGER,
)
