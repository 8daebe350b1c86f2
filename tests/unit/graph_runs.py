"""Runs of random graphs, compared with what they have to come to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from headrace import App, Run
from headrace.canvas import Workflow
from headrace.model.graph.form import parse_graph
from headrace.model.run import RunState
from tests.unit.graph_oracle import FAILED, SUCCESS
from tests.unit.graph_worlds import World


def declare(app: App, world: World) -> Workflow:
    """Give an app the workflow of a world; workers take runs only where their app has workflows."""
    return app.workflow(f"world-{world.seed}{world.salt}", parse_graph(world.graph))


async def start(app: App, world: World) -> Run:
    """Start the run of a world; its signal comes before or after, by its seed."""
    if world.seed % 2:
        await app.signal(world.signal, world.payload)
    run = await app.start(declare(app, world), world.given, metadata=world.metadata)
    if not world.seed % 2:
        await app.signal(world.signal, world.payload)
    return run


async def compare(app: App, run: Run, world: World, *, seconds: float) -> list[str]:
    """Wait for the run of a world and return how it ended otherwise than it has to."""
    expected, nodes = world.expected()
    nodes = {path: _comparable(end.state, end.output) for path, end in nodes.items()}
    try:
        async with asyncio.timeout(seconds):
            while not (await run.status()).final:
                await asyncio.sleep(0.005)
    except TimeoutError:
        live = [f"{one.node}: {one.state}" for one in await app.runtime.stores.runs.live_nodes(run.id)]
        return [f"did not end within {seconds} s; live: {live}", *_between(nodes, *await _ended(app, run))]
    found = _between(nodes, *await _ended(app, run))
    view = await run.view()
    if (view.state is RunState.SUCCEEDED) != (expected.state == SUCCESS):
        found.append(f"the run {view.state}, should be {expected}: {view.error}")
    elif view.state is RunState.SUCCEEDED:
        output = await app.runtime.means.values.load(view.output or "null")
        if output != expected.output:
            found.append(f"the run put out {output}, should be {expected.output}")
    elif view.error is None or view.error.kind != expected.kind:
        found.append(f"the run failed by {view.error}, should be {expected.kind}")
    return found


async def _ended(app: App, run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """Return how each node ended, by path, and by what error."""
    means = app.runtime.means
    found, errors = dict[str, str](), dict[str, str]()
    for ending in await means.stores.runs.read_nodes(run.id):
        if ending.path.endswith("@"):
            continue  # what graphs within were given
        output = None if ending.output is None else await means.values.load(ending.output)
        found[ending.path] = _comparable(ending.state.value, output)
        if ending.error is not None:
            errors[ending.path] = f" ({ending.error.kind}: {ending.error.message})"
    return found, errors


def _comparable(state: str, output: Any) -> str:
    if state == FAILED and isinstance(output, Mapping):
        output = {"kind": output["kind"]}
    return f"{state} {json.dumps(output, sort_keys=True)}"


def _between(expected: dict[str, str], found: dict[str, str], errors: dict[str, str]) -> list[str]:
    return [
        f"{path}: {found.get(path)}{errors.get(path, '')}, should be {expected.get(path)}"
        for path in sorted(expected.keys() | found.keys())
        if expected.get(path) != found.get(path)
    ]
