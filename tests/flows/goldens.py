"""Flows of this folder, and what they have to come to: at any level, on any store, whoever dies."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from headrace import App, Run
from headrace.apps.flows.checks import Checked, check_flow
from headrace.apps.flows.compiling import Plan
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.given import TRACE
from headrace.apps.flows.naming import BACK, RESULT, ids_of, workflow_name
from headrace.apps.flows.storing import finder, graph_of, input_of
from headrace.apps.flows.structure import Block
from headrace.model.run import Level, NodeState, RunState
from tests.flows.web import Web

FOLDER = Path(__file__).parent
FILES = FOLDER / "files"
#: In variables of a golden file: the address of the service of `web`.
WEB = "$WEB"
#: What models answer, as the scripted provider reads it.
ANSWERS = {
    "rules": [
        {"contains": "shout:", "compute": "upper"},
        {"path": "number", "pattern": "(R-\\d+)", "as": "string"},
        {"path": "cents", "pattern": "(\\d+) EUR", "as": "integer"},
    ]
}


@dataclass(frozen=True, slots=True)
class Golden:
    """A flow, what it is started with, and what it has to come to."""

    name: str
    document: dict[str, Any]
    given: dict[str, Any]

    @property
    def path(self) -> Path:
        """Return the file of what it has to come to."""
        return FOLDER / "golden" / f"{self.name}.json"

    @property
    def expected(self) -> dict[str, Any]:
        """Return what it has to come to, as `outcome` returns it."""
        return {key: self.given.get(key) for key in ("fails", "items", "nodes")}

    @property
    def written(self) -> Mapping[str, str]:
        """Return the files that it has to write."""
        return self.given.get("files") or {}


@cache
def names() -> list[str]:
    """Return the names of all flows."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> Golden:
    """Return a flow with what it has to come to."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    golden = FOLDER / "golden" / f"{name}.json"
    return Golden(name, document, json.loads(golden.read_text()))


@cache
def flows() -> dict[str, Flow]:
    """Return all flows by their names: some run others."""
    found = [parse_flow(load(name).document) for name in names()]
    return {flow.name: flow for flow in found}


@cache
def checked_flow(name: str) -> Checked:
    """Return a flow that can run."""
    found = check_flow(parse_flow(load(name).document), finder(flows()))
    assert found.runs, [str(problem) for problem in found.problems]
    return found


async def start(app: App, golden: Golden, level: Level, *, web: str = "") -> Run:
    """Start a run of a flow. `web`: the address of the service that it may ask."""
    checked = checked_flow(golden.name)
    given = golden.given
    variables = {key: f"http://{web}" if value == WEB else value for key, value in given["vars"].items()}
    items = [{"json": item} for item in given["input"]]
    workflow = app.workflow(f"{workflow_name(golden.name)}.{level.value}", graph_of(checked, level=level))
    return await app.start(workflow, input_of(checked, items, trigger=given.get("trigger"), variables=variables))


async def outcome(app: App, run: Run, golden: Golden, *, web: str = "") -> dict[str, Any]:
    """Return what a run that ended came to: its items, what it failed by, and what its nodes put out."""
    view, values = await run.view(), app.runtime.means.values
    items = await values.load(view.output) if view.state is RunState.SUCCEEDED and view.output else []
    fails = None if view.state is RunState.SUCCEEDED else f"{view.error and view.error.message}"
    outputs = {}
    for ending in await app.runtime.stores.runs.read_nodes(run.id):
        if ending.state is NodeState.SUCCESS and ending.output is not None:
            outputs[ending.path] = await values.load(ending.output)
    plan = checked_flow(golden.name).plan
    assert plan is not None
    nodes = _nodes_of(plan, plan.block, outputs)
    return {"fails": fails, "items": _without(items, web), "nodes": _without(dict(nodes), web)}


def _nodes_of(plan: Plan, block: Block, outputs: Mapping[str, Any], at: str = "", shown: str = "") -> Iterator[Any]:
    """Yield what nodes put out, by name; of those in loops and in other flows by "Loop[round]/Name"."""
    ids = ids_of(plan.flow.nodes)
    for name in block.names:
        path, title = at + ids[name], shown + name
        put_out = outputs.get(path)
        yield title, None if put_out is None else {"ran": put_out["ran"], "out": put_out["out"]}
        if name in block.loops:
            yield from _rounds(plan, block.loops[name], outputs, path, title)
        elif name in plan.inner:
            inner = plan.inner[name]
            for number in count():
                if f"{path}/run[{number}]/{RESULT}" not in outputs:
                    break
                yield from _nodes_of(inner, inner.block, outputs, f"{path}/run[{number}]/", f"{title}[{number}]/")


def _rounds(plan: Plan, body: Block, outputs: Mapping[str, Any], path: str, title: str) -> Iterator[Any]:
    for number in count():
        if f"{path}[{number}]/{BACK}" not in outputs:
            return
        yield from _nodes_of(plan, body, outputs, f"{path}[{number}]/", f"{title}[{number}]/")


def _without(value: Any, web: str) -> Any:
    """Return a value without the traces of items, and without the address of the service: it is never the same."""
    if isinstance(value, dict):
        kept = {key: _without(one, web) for key, one in value.items()}
        return {key: one for key, one in kept.items() if key != TRACE or "json" not in kept}
    if isinstance(value, list):
        return [_without(one, web) for one in value]
    return value.replace(web, WEB) if web and isinstance(value, str) else value


def differences(golden: Golden, found: Mapping[str, Any]) -> list[str]:
    """Return where a run came to something else than it has to."""
    expected = golden.expected
    wrong = [
        f"{key}: {found[key]!r}, should be {expected[key]!r}"
        for key in ("fails", "items")
        if found[key] != expected[key]
    ]
    nodes, wanted = found["nodes"], expected["nodes"] or {}
    wrong += [
        f"node {name}: {nodes.get(name)!r}, should be {wanted.get(name)!r}"
        for name in [*wanted, *(nodes.keys() - wanted.keys())]
        if name not in nodes or name not in wanted or nodes[name] != wanted[name]
    ]
    return wrong


def files_differ(golden: Golden, folder: Path) -> list[str]:
    """Return which files of a flow were written otherwise than they have to be."""
    found = {name: _content(folder / name) for name in golden.written}
    return [f"file {name}: {found[name]!r}" for name, text in golden.written.items() if found[name] != text]


def _content(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


async def ended(run: Run, seconds: float) -> None:
    """Wait until a run is final."""
    async with asyncio.timeout(seconds):
        while not (await run.status()).final:
            await asyncio.sleep(0.02)


@contextmanager
def surroundings(folder: Path) -> Iterator[tuple[Web, dict[str, str]]]:
    """Give flows a service, files of their own in a folder, and answers of a model; yield the environment for it."""
    shutil.copytree(FILES, folder / "flow-files")
    (folder / "answers.json").write_text(json.dumps(ANSWERS))
    with Web() as web:
        environ = {"HEADRACE_FLOWS_ALLOW_TARGETS": web.target, "HEADRACE_FLOWS_FILES": str(folder / "flow-files")}
        yield web, environ
