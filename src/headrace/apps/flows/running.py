"""A run of a flow in this process: what it needs beside it, its start, and how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace import App, HeadraceError, InvalidInputError, ResultTimeoutError, Run
from headrace.apps.flows.checks import Checked, Find, Problem, check_flow
from headrace.apps.flows.compiling import Plan
from headrace.apps.flows.form import Flow
from headrace.apps.flows.naming import slug, workflow_name
from headrace.apps.flows.reading import FlowError
from headrace.apps.flows.sources import beside, either, read_flow
from headrace.apps.flows.starting import alarm_of, variables_of
from headrace.apps.flows.storing import finder, graph_of, input_of, load_flow, store_flow, stored_flows
from headrace.model.graph.nodes import Graph
from headrace.model.run import NODES_QUEUE, WORKFLOWS_QUEUE, Level, NodeState
from headrace.nodes.execute_workflow import waits
from headrace.runs import start_options

#: How far a run is, is looked at so often.
LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be run, and with what."""

    #: A file, or the name of a stored flow.
    flow: str
    items: Sequence[Any] = ()
    trigger: str | None = None
    #: JSON: `$vars` beside those of the settings.
    variables: Any = None
    level: Level | None = None
    #: Nodes whose items are asked for in the end.
    nodes: Sequence[str] = ()


@dataclass(slots=True)
class Started:
    """A run that was started, of which flow, and what people may want to know."""

    run: Run
    checked: Checked
    notes: list[str] = field(default_factory=list)


class CannotRunError(FlowError):
    """The flow cannot run. Correct what is named; `headrace flows validate` tells it without a run."""

    def __init__(self, flow: Flow, problems: Sequence[Problem]) -> None:
        super().__init__("flow", "cannot run", flow.name)
        self.args = ("\n  ".join([f"flow {flow.name!r} cannot run:", *map(str, problems)]),)


def queues_of(app: App) -> list[str]:
    """Return the queues that are worked where a run is worked in one process."""
    return [*app.registry.queues(), WORKFLOWS_QUEUE, NODES_QUEUE]


async def start_flow(app: App, asked: Asked) -> Started:
    """Start a run of a flow and return it once it is stored.

    A run of a file, or at a level of its own, is kept under the name `draft.…`: what is stored under the flow's name
    stays as it is. Raises FlowError, NotFoundError.
    """
    flow, find = await _found(app, asked.flow)
    checked = check_flow(flow, find)
    if checked.graph is None:
        raise CannotRunError(flow, checked.problems)
    for node in asked.nodes:
        if node not in flow.nodes:
            raise InvalidInputError("--node", f"must be one of {', '.join(flow.nodes)}", node)
    given = input_of(
        checked,
        list(asked.items),
        trigger=asked.trigger,
        variables=variables_of(app.settings.flows.vars, asked.variables),
    )
    notes = [str(note) for note in checked.notes]
    name, graph = workflow_name(flow.name), None
    if is_file(asked.flow) or asked.level is not None:
        name = f"draft.{slug(flow.name)}"
        graph, said = await _draft(app, checked, asked.level, find)
        notes += said
    run_id = await app.run_service.start(name, graph, given, start_options(None, None, None, None))
    return Started(app.find_run(run_id), checked, notes)


def is_file(text: str) -> bool:
    """Whether a flow is meant by its file and not by its name.

    >>> is_file("flows/prices.json"), is_file("Prices")
    (True, False)
    """
    return text.endswith(".json") or Path(text).is_file()


async def _found(app: App, text: str) -> tuple[Flow, Find]:
    stored = finder(await stored_flows(app))
    if not is_file(text):
        return await load_flow(app, text), stored
    path = Path(text)
    return read_flow(path), either(beside(path), stored)


async def _draft(app: App, checked: Checked, level: Level | None, find: Find) -> tuple[Graph, list[str]]:
    """Return the graph of a flow that is run and not stored under its name, and what to know of the run."""
    flow = checked.flow
    alarm, why = alarm_of(flow, find)
    notes = [f"flow {why}"] if why else []
    graph = graph_of(checked, level=level, alarm=alarm)
    if alarm is flow:
        graph, alarm = replace(graph, on_failure=f"draft.{slug(flow.name)}"), None
    return graph, notes + await _store_others(app, checked, alarm, find)


async def _store_others(app: App, checked: Checked, alarm: Flow | None, find: Find) -> list[str]:
    """Store the flows that are started by their names and are not stored yet; return what to know of those that are."""
    assert checked.plan is not None
    others = {flow.name: flow for flow in [*sent_by(checked.plan), *([alarm] if alarm else [])]}
    stored, notes = await stored_flows(app), []
    for flow in others.values():
        known = stored.get(workflow_name(flow.name))
        if known is None:
            await store_flow(app, graph_of(check_flow(flow, find), alarm=alarm_of(flow, find)[0]))
            notes.append(f"flow {flow.name!r} was stored, as it is started by its name")
        elif known.document() != flow.document():
            notes.append(f"flow {flow.name!r} is stored with other content, and that is run; import it to change it")
    return notes


def sent_by(plan: Plan) -> list[Flow]:
    """Return the flows that nodes of a flow, and of those that it runs, start without waiting for them."""
    found: list[Flow] = []
    for name, inner in plan.inner.items():
        found += [] if waits(plan.flow.nodes[name].parameters) else [inner.flow]
        found += sent_by(inner)
    return found


async def wait_for(run: Run, seconds: float | None) -> tuple[list[Any], HeadraceError | None]:
    """Wait for a run; return the items of its last nodes, or none and why it failed. Raises ResultTimeoutError."""
    try:
        return await run.result(seconds) or [], None
    except ResultTimeoutError:
        raise
    except HeadraceError as error:
        if not (await run.status()).final:
            raise
        return [], error


async def follow(run: Run, waiting: asyncio.Task[Any], show: Callable[[Mapping[str, NodeState]], None]) -> None:
    """Call `show` with the states of the run's nodes by their paths, again and again until `waiting` is done."""
    while not waiting.done():
        show((await run.progress()).nodes)
        await asyncio.wait([waiting], timeout=LOOK_SECONDS)
