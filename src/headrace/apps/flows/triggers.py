"""Flows that begin by themselves: those that are stored, switched on, and marked `active` in their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace import App
from headrace.apps.flows.form import Flow, Node
from headrace.apps.flows.storing import flow_of
from headrace.model.run import StoredWorkflow
from headrace.nodes.base import NodeType, Shape
from headrace.nodes.registry import find_type

#: The type that begins error workflows.
ERROR_TRIGGER = "errorTrigger"


async def active_flows(app: App) -> dict[str, Flow]:
    """Return the latest version of each flow whose triggers are listened to, by the name of its workflow."""
    stored = await app.runtime.stores.workflows.list_workflows()
    found = {one.name: active_flow(one) for one in stored}
    return {name: flow for name, flow in found.items() if flow is not None}


def active_flow(stored: StoredWorkflow) -> Flow | None:
    """Return the flow of a stored workflow, None unless its triggers are listened to."""
    flow = flow_of(stored) if stored.active else None
    return flow if flow is not None and flow.active else None


def triggers_of(flow: Flow) -> Iterator[tuple[Node, NodeType]]:
    """Yield the nodes that begin a flow, in the order in which they were written."""
    for node in flow.nodes.values():
        kind = None if node.disabled else find_type(node.type, node.parameters)
        if kind is not None and kind.shape is Shape.TRIGGER:
            yield node, kind


def start_of(app: App, node: str, item: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Return the input of a run that a trigger begins with one item. See `storing.input_of` for those by hand."""
    return {"items": [item], "trigger": node, "mode": mode, "vars": dict(app.settings.flows.vars)}
