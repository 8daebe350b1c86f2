"""Flows in the store: the graph that was made of one, with the JSON that it was made of beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headrace import App, InvalidInputError, NotFoundError
from headrace.apps.flows.checks import Checked, Find
from headrace.apps.flows.compiling import entry_of, triggers_of
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.naming import PREFIX, workflow_name
from headrace.apps.flows.reading import FlowError
from headrace.model.graph.form import parse_graph
from headrace.model.graph.nodes import Graph
from headrace.model.run import Level, StoredWorkflow


def graph_of(checked: Checked, *, level: Level | None = None, alarm: Flow | None = None) -> Graph:
    """Return the graph of a flow as it is stored. `alarm`: the flow that is started when a run of it fails.

    Raises FlowError with the first problem of a flow that cannot run.
    """
    if checked.graph is None:
        raise FlowError("flow", f"{checked.flow.name!r} cannot run", str(checked.problems[0]))
    written = checked.flow.settings.get("headrace")
    wanted = level or (written.get("level") if isinstance(written, dict) else None)
    return replace(
        checked.graph,
        source=checked.flow.document(),
        tags=() if wanted is None else (f"schedule:{wanted}",),
        on_failure=None if alarm is None else workflow_name(alarm.name),
    )


def input_of(
    checked: Checked, items: list[Any], *, trigger: str | None = None, mode: str = "manual",
    variables: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the input of a run. `items`: as the trigger is to give them; none: one empty item.

    `trigger`: the name of the node that begins; default: the one for this, else the first. Raises InvalidInputError.
    """
    assert checked.plan is not None
    begins = triggers_of(checked.plan)
    if trigger is not None and trigger not in begins:
        raise InvalidInputError("trigger", f"must be one of {', '.join(begins)}", trigger)
    return {
        "items": items or [{"json": {}}], "trigger": trigger or entry_of(checked.plan), "mode": mode,
        "vars": dict(variables or {}),
    }  # fmt: skip


async def store_flow(app: App, graph: Graph) -> StoredWorkflow:
    """Store a flow under the name of its workflow, as another version where it changed."""
    return await app.run_service.save(workflow_name(graph.source["name"]), graph)


def flow_of(stored: StoredWorkflow) -> Flow | None:
    """Return the flow that a stored workflow was made of; None where it is no flow."""
    source = json.loads(stored.graph).get("source") if stored.name.startswith(PREFIX) else None
    return None if source is None else parse_flow(source)


async def stored_flows(app: App) -> dict[str, Flow]:
    """Return the latest version of every stored flow, by the name of its workflow."""
    found = {stored.name: flow_of(stored) for stored in await app.runtime.stores.workflows.list_workflows()}
    return {name: flow for name, flow in found.items() if flow is not None}


async def load_flow(app: App, name: str) -> Flow:
    """Return a stored flow by its name, the name of its workflow, or its id. Raises NotFoundError."""
    found = finder(await stored_flows(app))(name)
    if found is None:
        raise NotFoundError(f"no flow {name!r} is stored; `headrace flows list` shows those there are")
    return found


async def switch_flow(app: App, name: str, *, active: bool) -> tuple[Flow, int]:
    """Say whether schedules and webhooks start a stored flow; return it with its version. Raises NotFoundError."""
    flow = await load_flow(app, name)
    stored = await app.runtime.stores.workflows.get_workflow(workflow_name(flow.name))
    if stored is None:
        raise NotFoundError(f"no flow {name!r} is stored any more")
    if flow.active == active:
        return flow, stored.version
    # The graph stays as it was made: only what it was made from says something else.
    graph = parse_graph(json.loads(stored.graph))
    changed = replace(graph, source=flow.document() | {"active": active})
    return flow, (await app.run_service.save(stored.name, changed)).version


def finder(flows: Mapping[str, Flow]) -> Find:
    """Return what finds one of some flows, by its name, by the name of its workflow, or by its id."""

    def find(wanted: str) -> Flow | None:
        named = (flow for flow in flows.values() if wanted in (flow.name, flow.id))
        return next(named, flows.get(wanted))

    return find
