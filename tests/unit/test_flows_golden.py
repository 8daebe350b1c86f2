"""Flows as people draw them: each node puts out what it has to, at both levels, and the JSON stays as it was."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from headrace import App
from headrace.apps.flows.form import Connection, Node, parse_flow
from headrace.apps.flows.tasks import register
from headrace.model.run import Level
from headrace.nodes.base import Shape
from headrace.nodes.registry import all_types, find_type
from headrace.settings import load_settings
from headrace.testing.provider import Answers, ScriptedProvider
from tests.flows import goldens

#: Types that change no item.
PASSING = ("filter", "if", "limit", "noOp", "removeDuplicates", "sort", "switch", "wait")
#: Types that other ones stand for.
SELDOM = ("errorTrigger", "informationExtractor", "llmExtract", "readBinaryFiles")


@pytest.mark.parametrize("level", [Level.WORKFLOW, Level.NODE])
async def test_every_node_puts_out_what_it_has_to(level: Level, tmp_path: Path) -> None:
    """All flows together: items with their lineage of each node, of each round of a loop, and of flows within."""
    with goldens.surroundings(tmp_path) as (web, environ):
        async with ScriptedProvider(rules=Answers.load(tmp_path / "answers.json")) as provider:
            environ = {"HEADRACE_URL": "memory://", **environ, **provider.environment}
            app = App(settings=load_settings(environ=environ, file=tmp_path / "none.toml"))
            register(app)
            app.works_runs = True
            async with app.worker():
                found = await asyncio.gather(*(_differences(app, name, level, web.target) for name in goldens.names()))
    wrong = {name: one for name, one in zip(goldens.names(), found, strict=True) if one}
    for name in goldens.names():
        wrong |= {f"{name} ": one for one in [goldens.files_differ(goldens.load(name), tmp_path / "flow-files")] if one}
    assert wrong == {}


async def _differences(app: App, name: str, level: Level, web: str) -> list[str]:
    golden = goldens.load(name)
    run = await goldens.start(app, golden, level, web=web)
    await goldens.ended(run, 30)
    return goldens.differences(golden, await goldens.outcome(app, run, golden, web=web))


@pytest.mark.parametrize("name", goldens.names())
def test_a_flow_stays_as_it_was_written(name: str) -> None:
    """With fields that are not known here, and with numbers and texts as they were."""
    text = (goldens.FOLDER / f"{name}.json").read_text()
    assert json.dumps(parse_flow(json.loads(text)).document()) == json.dumps(json.loads(text))


@pytest.mark.parametrize("name", goldens.names())
def test_items_are_paired_with_those_they_came_from(name: str) -> None:
    """In what is written: a node ran where it was given items, and what it only passed on is what it was given."""
    golden = goldens.load(name)
    nodes, flow = golden.given["nodes"], parse_flow(golden.document)
    for node in flow.nodes.values():
        links = [link for link in flow.connections if link.target == node.name]
        if not links or any(link.source not in nodes for link in links) or nodes.get(node.name) is None:
            continue  # it begins the flow, is in a loop, or failed
        given, out = inputs(nodes, links), nodes[node.name]
        assert out["ran"] == any(given.values()), node.name
        for item in (item for port in out["out"] for item in port):
            check_pairing(node, item, given)


def check_pairing(node: Node, item: dict[str, Any], given: dict[int, list[Any]]) -> None:
    """Check what an item of a node is paired with; a loop and another flow may not know."""
    kind = find_type(node.type, node.parameters)
    assert kind is not None
    sources = sources_of(item, given)
    assert sources or kind.shape in (Shape.FLOW, Shape.LOOP), (node.name, item)
    if kind.name in PASSING and not node.always_output and not node.disabled:
        assert [item["json"]] == [one["json"] for one in sources], (node.name, item)


def inputs(nodes: dict[str, Any], links: list[Connection]) -> dict[int, list[Any]]:
    """Return the items that connections lead to each input port."""
    given: dict[int, list[Any]] = {}
    for link in links:
        out = (nodes[link.source] or {"out": []})["out"]
        given.setdefault(link.input, []).extend(out[link.port] if link.port < len(out) else [])
    return given


def sources_of(item: dict[str, Any], given: dict[int, list[Any]]) -> list[Any]:
    """Return the items that an item is paired with. Raises IndexError for one that there is not."""
    paired = item.get("pairedItem")
    return [
        given[one.get("input", 0)][one["item"]]
        for one in (paired if isinstance(paired, list) else [paired])
        if one is not None
    ]


def test_the_flows_are_as_many_and_as_large_as_those_of_people() -> None:
    """From 2 nodes to 60, half of them of about a dozen or more; every type is there, most of them twice or more."""
    flows = goldens.flows().values()
    sizes = sorted(len(flow.nodes) for flow in flows)
    assert (sizes[0], sizes[-1]) == (2, 60)
    assert len(sizes) >= 36
    assert 9 <= median(sizes) <= 14
    kinds = [find_type(node.type, node.parameters) for flow in flows for node in flow.nodes.values()]
    names = [kind.name for kind in kinds if kind is not None]
    counts = {one.name: names.count(one.name) for one in all_types()}
    assert {name for name, count in counts.items() if count < (1 if name in SELDOM else 2)} == set()
