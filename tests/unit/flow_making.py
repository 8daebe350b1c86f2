"""Short ways to write flows in tests, and to run them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from headrace import App, Run
from headrace.apps.flows.checks import check_flow
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.storing import finder, graph_of, input_of
from headrace.apps.flows.tasks import register
from headrace.model.run import Level

_WIRE = re.compile(r"([^:>]+?)(?::(\d+))?\s*->\s*([^:>]+?)(?::(\d+))?")


def node(name: str, kind: str, parameters: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a node; `kind` is the word of a type of ours, or a whole type."""
    written = kind if "." in kind else f"headrace.{kind}"
    return {"name": name, "type": written, "typeVersion": 1, "position": [0, 0], "parameters": parameters or {}, **more}


def flow(nodes: Sequence[dict[str, Any]], *wires: str, name: str = "Test", **more: Any) -> dict[str, Any]:
    """Return a flow; each wire is "A -> B" or, with ports, "If:1 -> Merge:0"."""
    connections: dict[str, Any] = {}
    for wire in wires:
        found = _WIRE.fullmatch(wire.strip())
        assert found is not None, wire
        source, port, target, index = found.groups()
        ports = connections.setdefault(source, {"main": []})["main"]
        while len(ports) <= int(port or 0):
            ports.append([])
        ports[int(port or 0)].append({"node": target, "type": "main", "index": int(index or 0)})
    return {"name": name, "nodes": list(nodes), "connections": connections, **more}


def parsed(document: dict[str, Any]) -> Flow:
    """Return a flow that was read."""
    return parse_flow(document)


def problems_of(document: dict[str, Any], *others: dict[str, Any]) -> list[str]:
    """Return why a flow cannot run."""
    find = finder({one["name"]: parse_flow(one) for one in others})
    return [str(problem) for problem in check_flow(parse_flow(document), find).problems]


async def start_flow(
    app: App, document: dict[str, Any], items: Sequence[Any] = (), *, others: Sequence[dict[str, Any]] = (),
    level: Level = Level.WORKFLOW, **options: Any,
) -> Run:  # fmt: skip
    """Start a run of a flow. `items`: what the trigger gives, plain objects; `options`: of `input_of`."""
    find = finder({one["name"]: parse_flow(one) for one in others})
    checked = check_flow(parse_flow(document), find)
    assert checked.runs, [str(problem) for problem in checked.problems]
    made = [{"json": item} for item in items]
    name = f"{workflow_name(checked.flow.name)}.{'w' if level is Level.WORKFLOW else 'n'}"
    workflow = app.workflow(name, graph_of(checked, level=level))
    return await app.start(workflow, input_of(checked, made, **options))


async def run_flow(document: dict[str, Any], items: Sequence[Any] = (), **options: Any) -> list[Any]:
    """Run a flow on a store in memory and return the `json` of the items of its last nodes."""
    return [item["json"] for item in await run_items(document, items, **options)]


async def run_items(document: dict[str, Any], items: Sequence[Any] = (), **options: Any) -> list[dict[str, Any]]:
    """Do what `run_flow` does; return whole items."""
    app = App("memory://")
    register(app)
    app.works_runs = True
    async with app.worker():
        found: list[dict[str, Any]] = await (await start_flow(app, document, items, **options)).result("20s")
        return found
