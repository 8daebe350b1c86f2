"""executeWorkflow: runs another flow, once with all items or once for each.

The run itself is made by whoever compiles a flow; this says which flow is run, how, and with what.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.nodes import checking
from headrace.nodes.base import Fault, Items, Named, Shape, ours
from headrace.nodes.parameters import Parameters

_SOURCES = ("database", "parameter")
_ELSEWHERE = {
    "localFile": 'import that file as a flow, and use source "database" with its name',
    "url": 'import that flow, and use source "database" with its name',
}
_MODES = ("once", "each")


@dataclass(frozen=True, slots=True)
class Target:
    """The flow that is run: by the id or the name it is known by, or written out."""

    id: str = ""
    #: What it was called where this flow was made.
    name: str = ""
    flow: Mapping[str, Any] | None = None


class ExecuteWorkflowType(Named):
    """Gives the items that the other flow ended with, or its own where nobody waits for it."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a flow that cannot be told beforehand, a wrong mode."""
        found = checking.one_of(parameters, "source", _SOURCES, default=_SOURCES[0], instead=_ELSEWHERE)
        found += checking.one_of(parameters, "mode", _MODES, default=_MODES[0], instead={})
        waits = checking.written(parameters, "options.waitForSubWorkflow", True)
        if not isinstance(waits, bool):
            found.append(Fault("options.waitForSubWorkflow", f"must be true or false, written out, got {waits!r}"))
        try:
            target_of(parameters)
        except InvalidInputError as error:
            found.append(Fault(error.field.removeprefix("parameters."), f"{error.rule}, got {error.value!r}"))
        return found


def target_of(parameters: Mapping[str, Any]) -> Target:
    """Return the flow that is run. Raises InvalidInputError.

    >>> target_of({"workflowId": {"__rl": True, "mode": "list", "value": "7", "cachedResultName": "Clean up"}})
    Target(id='7', name='Clean up', flow=None)
    """
    if parameters.get("source") == "parameter":
        return Target(flow=_inline(parameters.get("workflowJson")))
    known = parameters.get("workflowId")
    value, name = (known.get("value"), known.get("cachedResultName")) if isinstance(known, dict) else (known, None)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or checking.is_expression(value):
        rule = "must be the id or the name of a flow, written out: use a switch node and an executeWorkflow for each"
        raise InvalidInputError("parameters.workflowId", rule, value)
    return Target(value.strip(), name if isinstance(name, str) else "")


def each_by_itself(parameters: Mapping[str, Any]) -> bool:
    """Whether the other flow is run once for each item."""
    return parameters.get("mode") == "each"


def waits(parameters: Mapping[str, Any]) -> bool:
    """Whether the node ends when the other flow has ended.

    >>> waits({}), waits({"options": {"waitForSubWorkflow": False}})
    (True, False)
    """
    return bool(checking.written(parameters, "options.waitForSubWorkflow", True))


def inputs_of(items: Items, at: Callable[[int], Parameters]) -> Items:
    """Return what the other flow is given for these items; `at` returns the parameters at one of them.

    The fields of `workflowInputs` are put over those of the item; where it lists what the other flow asks for, nothing
    else is given, and null where there is no value.
    """
    return [{**item, "json": _input(item.get("json", {}), at(index))} for index, item in enumerate(items)]


def _input(fields: Mapping[str, Any], at: Parameters) -> dict[str, Any]:
    merged = {**fields, **at.members("workflowInputs.value")}
    raw = Parameters(at.raw).listed("workflowInputs.schema")
    asked = [row.get("id") or row.get("displayName") for row in raw if isinstance(row, dict) and not row.get("removed")]
    return {name: merged.get(name) for name in asked if isinstance(name, str)} if asked else merged


def _inline(value: object) -> Mapping[str, Any]:
    """A flow that is written out in the parameters."""
    found = value
    if isinstance(value, str) and not checking.is_expression(value):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = None
    if not isinstance(found, dict) or not isinstance(found.get("nodes"), list):
        rule = "must be the JSON of a flow, written out, with nodes and connections"
        raise InvalidInputError("parameters.workflowJson", rule, value)
    return found


TYPE = ExecuteWorkflowType(
    "executeWorkflow",
    ours("executeWorkflow", "n8n-nodes-base.executeWorkflow"),
    (1, 1.3),
    "runs another flow with its items",
    Shape.FLOW,
)
