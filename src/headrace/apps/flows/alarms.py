"""Error workflows: what the error trigger of a flow tells of the run whose failure it follows.

The engine starts the workflow that a graph names in `on_failure` with {"workflow", "run_id", "error"}. `begun` makes of
that what error triggers put out elsewhere, from what is stored of the failed run. A run that follows a failure and
fails itself is followed by nothing: the engine sees to that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace import App, Context
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.naming import ids_of
from headrace.apps.flows.requests import with_request
from headrace.apps.flows.triggers import ERROR_TRIGGER
from headrace.model.run import NodeEnding, NodeState, RunView
from headrace.nodes.base import Shape
from headrace.nodes.registry import find_type

#: The mode of runs that follow a failure.
MODE = "error"
_REPORT = frozenset({"workflow", "run_id", "error"})


def is_report(start: Any) -> bool:
    """Whether the input of a run is the engine's report of a failure.

    >>> is_report({"workflow": "w", "run_id": "7", "error": None}), is_report({"items": [], "trigger": "Go"})
    (True, False)
    """
    return isinstance(start, dict) and start.keys() == _REPORT


async def begun(app: App, context: Context, start: Any, node: Mapping[str, Any]) -> Any:
    """Return the input of a run as its trigger `node` is to see it.

    A report begins error triggers and no others; a webhook is given the whole of its request.
    """
    if not is_report(start):
        return with_request(context, start, node["name"])
    kind = find_type(node["type"], node.get("parameters", {}))
    if kind is None or kind.name != ERROR_TRIGGER:
        return {"items": [], "trigger": None}
    return {"items": [{"json": await payload_of(app, start)}], "trigger": node["name"], "mode": MODE, "vars": {}}


async def payload_of(app: App, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an error trigger puts out; what is no longer stored of the failed run is left empty."""
    stores, run_id = app.runtime.stores, app.find_run(report["run_id"]).id
    view = await stores.runs.get_run(run_id)
    flow = None if view is None else await _flow_of(app, view)
    endings = [] if view is None else await stores.runs.read_nodes(run_id)
    failed = next((one for one in endings if _is_cause(one, endings)), None)
    return {
        "execution": {
            "id": str(run_id),
            "url": None,
            "retryOf": None if view is None or view.rerun_of is None else str(view.rerun_of),
            "error": _error_of(report["error"] or {}, failed),
            "lastNodeExecuted": None if failed is None else _name_of(flow, failed.path),
            "mode": "manual" if view is None else await _mode_of(app, view),
        },
        "workflow": {
            "id": report["workflow"] if flow is None else flow.id or report["workflow"],
            "name": report["workflow"] if flow is None else flow.name,
        },
    }


def _error_of(told: Mapping[str, Any], failed: NodeEnding | None) -> dict[str, Any]:
    """Return the error of the node that failed, else what the run's own end says."""
    if failed is None or failed.error is None:
        return {"message": told.get("message", ""), "name": told.get("kind", ""), "stack": None}
    return {"message": failed.error.message, "name": failed.error.kind, "stack": failed.error.trace or None}


def _is_cause(ending: NodeEnding, endings: list[NodeEnding]) -> bool:
    """Whether a node failed, and not only because one within it did."""
    if ending.state is not NodeState.FAILED or ending.error is None:
        return False
    within = (f"{ending.path}/", f"{ending.path}[")
    return not any(one.state is NodeState.FAILED and one.path.startswith(within) for one in endings)


async def _flow_of(app: App, view: RunView) -> Flow | None:
    graph = await app.runtime.stores.runs.load_graph(view.snapshot)
    source = None if graph is None else json.loads(graph).get("source")
    return None if source is None else parse_flow(source)


async def _mode_of(app: App, view: RunView) -> str:
    given = await app.runtime.means.values.load(view.input)
    mode = given.get("mode") if isinstance(given, dict) else None
    return mode if isinstance(mode, str) else MODE if is_report(given) else "manual"


def _name_of(flow: Flow | None, path: str) -> str:
    """Return the name of the node at a path: within a loop that of the body's, else that of the flow's own."""
    names = {} if flow is None else {node_id: name for name, node_id in ids_of(flow.nodes).items()}
    found = ""
    for part in path.split("/"):
        name = names.get(part.partition("[")[0])
        if name is None or flow is None:
            break
        found = name
        kind = find_type(flow.nodes[name].type, flow.nodes[name].parameters)
        if kind is None or kind.shape is not Shape.LOOP:
            break
    return found or path
