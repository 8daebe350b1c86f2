"""Workflows: a list, and one drawn, with its versions and last runs; running it, switching it, importing flows.

Every app has one list of them. Where it runs JSON flows it is the page of that application, at /flows; elsewhere it is
at /workflows.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from functools import lru_cache

from headrace.app import App
from headrace.apps.flows.form import Flow
from headrace.apps.flows.naming import PREFIX
from headrace.apps.flows.opening import runs_flows
from headrace.apps.flows.storing import flow_of
from headrace.dashboard.flow_graph import FlowFacts, drawn_flow, drawn_graph, facts_of
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.run_graph import Drawn
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.model.graph.form import parse_graph
from headrace.model.graph.layout import Layout
from headrace.model.names import check_name
from headrace.model.run import RunView, StoredWorkflow, WorkflowEntry

#: Workflows of a page, versions that it links to, runs that it shows.
ROWS, VERSIONS, RUNS = 25, 20, 10
_KNOWN: dict[str, FlowFacts | None] = {}
#: Flows whose facts are kept; a version never changes.
_MOST_KNOWN = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """A workflow of the list."""

    name: str
    stored: WorkflowEntry | None
    flow: FlowFacts | None = None
    last: RunView | None = None


def place_of(app: App) -> str:
    """Return where the workflows of an app are listed."""
    return "flows" if runs_flows(app) else "workflows"


async def workflows(view: View) -> Context:
    """Return workflows by name: those that are stored, and those that the app declares."""
    after = view.query.get("after", "")
    stores = view.app.runtime.stores
    found = await stores.workflows.page_workflows(after=check_name("after", after) if after else "", limit=ROWS + 1)
    shown = found[:ROWS]
    rows = await asyncio.gather(*(_row(view, entry) for entry in shown))
    last = shown[-1].name if len(found) > ROWS else None
    rows += _unstored(view.app, after, last, {row.name for row in rows})
    return {
        "rows": sorted(rows, key=lambda row: row.name),
        "next": last, "later": bool(after), "imports": runs_flows(view.app), "flows": place_of(view.app),
    }  # fmt: skip


def _unstored(app: App, after: str, last: str | None, known: set[str]) -> list[Row]:
    """Return the workflows of the app that nobody has started yet, of a part of the list."""
    names = {one.name for one in app.declared_workflows} - known
    return [Row(name, None) for name in names if name > after and (last is None or name < last)]


async def _row(view: View, entry: WorkflowEntry) -> Row:
    flow, runs = await asyncio.gather(
        _facts(view, entry), view.app.runtime.stores.runs.list_runs(workflow=entry.name, limit=1)
    )
    return Row(entry.name, entry, flow, runs[0] if runs else None)


async def _facts(view: View, entry: WorkflowEntry) -> FlowFacts | None:
    """Return what is told of a flow; None of a workflow that is none."""
    if not entry.name.startswith(PREFIX):
        return None
    if entry.snapshot not in _KNOWN:
        stored = await view.app.runtime.stores.workflows.get_workflow(entry.name, entry.version)
        flow = None if stored is None else _flow_in(stored)
        if len(_KNOWN) >= _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[entry.snapshot] = None if flow is None else facts_of(flow)
    return _KNOWN[entry.snapshot]


def _flow_in(stored: StoredWorkflow) -> Flow | None:
    try:
        return flow_of(stored)
    except InvalidInputError:
        return None


async def workflow(view: View) -> Context:
    """Return a version of a workflow, drawn, with its last runs."""
    name = check_name("workflow", view.params["name"])
    stores = view.app.runtime.stores
    latest, runs = await asyncio.gather(
        stores.workflows.get_workflow(name), stores.runs.list_runs(workflow=name, limit=RUNS)
    )
    stored = await _version(view, name, latest)
    flow, drawn = _unstored_drawing(view.app, name) if stored is None else _drawing(stored)
    newest = 0 if latest is None else latest.version
    return {
        "name": name, "stored": stored, "flow": flow, "drawn": drawn, "runs": runs,
        "flows": place_of(view.app), "versions": list(range(newest, max(newest - VERSIONS, 0), -1)),
        "active": latest is None or latest.active,
    }  # fmt: skip


async def _version(view: View, name: str, latest: StoredWorkflow | None) -> StoredWorkflow | None:
    """Return the version that is asked for. Raises InvalidInputError, NotFoundError."""
    text = view.query.get("version", "")
    if not text or latest is None:
        return latest
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:10]) <= latest.version:
        raise InvalidInputError("version", f"must be from 1 to {latest.version}", text[:40])
    return await view.app.runtime.stores.workflows.get_workflow(name, int(text))


def _unstored_drawing(app: App, name: str) -> tuple[None, Drawn]:
    """Return how a workflow is drawn that nobody has started yet. Raises NotFoundError."""
    found = next((one for one in app.declared_workflows if one.name == name), None)
    if found is None:
        raise NotFoundError(f"no workflow {name!r} is stored; the list of workflows has those there are")
    return None, drawn_graph(Layout(found.graph))


@lru_cache(maxsize=32)
def _drawing(stored: StoredWorkflow) -> tuple[FlowFacts | None, Drawn]:
    """Return how a workflow is drawn, and what is told of one that is a flow."""
    flow = _flow_in(stored)
    if flow is not None:
        return facts_of(flow), drawn_flow(flow)
    return None, drawn_graph(Layout(parse_graph(json.loads(stored.graph))))


def _belongs_elsewhere(app: App) -> bool:
    return not runs_flows(app)


_LIST, _ONE = frozenset({"after"}), frozenset({"version"})
PAGES = (
    Page("workflows", "/workflows", workflows, title="Workflows", query=_LIST, every=3.0, belongs=_belongs_elsewhere),
    Page("workflow", "/workflows/{name}", workflow, query=_ONE, every=3.0, belongs=_belongs_elsewhere),
)
#: Those of an application.
FLOWS = (
    Page(
        "flows", "/flows", workflows, title="Flows", group="Applications", query=_LIST, every=3.0, belongs=runs_flows,
        template="workflows",
    ),
    Page("flow", "/flows/{name}", workflow, query=_ONE, every=3.0, belongs=runs_flows, template="workflow"),
)  # fmt: skip
