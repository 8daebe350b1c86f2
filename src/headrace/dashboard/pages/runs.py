"""Runs: a list with filters, one run as its graph with all that becomes of it, and one node of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headrace.apps.flows.drawing.svg import cut
from headrace.dashboard.asking import ROWS, choice, named, place, rows_of
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.pages.flows import place_of
from headrace.dashboard.run_graph import MOST_TITLE, Drawn, counts_of, drawn, entries_of, labels_of
from headrace.dashboard.values import Shown, shown
from headrace.engine.workflows.documents import find_node
from headrace.engine.workflows.node_inputs import NodeInputs, read_inputs
from headrace.engine.workflows.tree import RunTree, TreeNode
from headrace.model.graph.layout import Layout
from headrace.model.graph.paths import scope_of
from headrace.model.ids import parse_id
from headrace.model.job import JobState
from headrace.model.run import NodeState, RunState

#: Looks at what is live of a run share what was read of it so many seconds ago, and more where it takes long to read.
LIVE = 0.5
#: Nodes, or entries of a map, that a table shows; those that need a look come first where there are more.
MOST = 50
_URGENT = (NodeState.FAILED, NodeState.PARKED, NodeState.RUNNING)


async def runs(view: View) -> Context:
    """Return the newest runs of those that are asked for."""
    wanted = {"workflow": named(view, "workflow"), "state": choice(view, "state", RunState)}
    found = await view.app.runtime.stores.runs.list_runs(before=place(view), limit=ROWS + 1, **wanted)  # type: ignore[arg-type]
    return {"list": rows_of(view, found), "wanted": wanted, "states": list(RunState), "flows": place_of(view.app)}


async def run(view: View) -> Context:
    """Return a run with its graph and its nodes."""
    tree = await _tree(view)
    layout = await _layout(view, tree)
    given, output = await asyncio.gather(
        shown(view, None if view.live else tree.run.input), shown(view, tree.run.output)
    )
    done = sum(node.state.final for node in tree.nodes)
    return {
        "run": tree.run, "flows": place_of(view.app), "input": given, "output": output,
        "done": done, "all": len(tree.nodes),
        "waiting": [node for node in _walk(tree.nodes) if node.waits_for is not None][:MOST],
        "labels": labels_of(layout), "drawn": drawn(layout, "", tree.nodes, labels_of(layout), view.now),
        **_listed(view, tree.nodes),
    }  # fmt: skip


async def node(view: View) -> Context:
    """Return a node of a run, with what it was given and what is within it."""
    tree = await _tree(view)
    found = find_node(tree, view.params["path"])
    root = await _layout(view, tree)
    inputs, output, job = await asyncio.gather(
        read_inputs(view.app.runtime.means, tree.run, found.path), shown(view, found.output), _job_of(view, tree, found)
    )
    sources = await _shown_sources(view, inputs)
    entries = entries_of(found)
    layout = None if entries or not found.children else root.at(found.path)
    graph = None if layout is None else drawn(layout, found.path, found.children, labels_of(root), view.now)
    return {
        "run": tree.run, "node": found, "job": job, "label": _called(found, root),
        "above": scope_of(found.path), "inputs": inputs, "sources": sources, "output": output, "entries": entries,
        "drawn": graph, "labels": labels_of(root), **_listed(view, found.children),
    }  # fmt: skip


async def _job_of(view: View, tree: RunTree, found: TreeNode) -> UUID | None:
    """Return the job of a node: that which it has, or, of one that failed, that among the last failures of its task.

    Nobody keeps which job an ended node had; older ones are not looked for.
    """
    if found.job_id is not None or found.state is not NodeState.FAILED or found.task is None:
        return found.job_id
    inspect = view.app.runtime.stores.inspect
    failed = await inspect.list_jobs(state=JobState.FAILED, task=found.task, limit=MOST, brief=True)
    return next((job.id for job in failed if (job.run_id, job.node) == (tree.run.id, found.path)), None)


def _called(found: TreeNode, root: Layout) -> str:
    """Return what a node is called on top of its page."""
    return cut(labels_of(root).get(found.path.rpartition("/")[2], found.path), MOST_TITLE)


async def _shown_sources(view: View, inputs: NodeInputs) -> list[tuple[str, Shown]]:
    """Return what a node was given by whom; where its arguments are known, they say it."""
    if inputs.known:
        return []
    values = await asyncio.gather(*(shown(view, source.stored) for source in inputs.sources[:MOST]))
    return [(source.path, value) for source, value in zip(inputs.sources, values, strict=False)]


async def _tree(view: View) -> RunTree:
    handle = view.app.find_run(parse_id("run id", view.params["run_id"]))
    return await view.answer(("run", handle.id), handle.tree, seconds=LIVE)


async def _layout(view: View, tree: RunTree) -> Layout:
    return await view.app.runtime.means.known.layout(tree.run.snapshot)


def _listed(view: View, nodes: Sequence[TreeNode]) -> dict[str, Any]:
    """Return the rows of a table of nodes."""
    wanted = choice(view, "state", NodeState)
    rows = [one for one in nodes if wanted is None or one.state is wanted]
    if len(rows) > MOST:
        rows = [one for one in rows if one.state in _URGENT] + [one for one in rows if one.state not in _URGENT]
    return {"nodes": rows[:MOST], "left_out": len(rows) - MOST, "wanted": wanted, "counts": counts_of(nodes)}


def _walk(nodes: Sequence[TreeNode]) -> list[TreeNode]:
    """Return nodes with all that is within them."""
    found = list(nodes)
    for one in found:  # which grows
        found += one.children
    return found


def _states(context: Context) -> str:
    """Return what has become of each box of a graph, a record for each; an empty text of a node that has none."""
    graph: Drawn | None = context["drawn"]
    return "" if graph is None else graph.text


PAGES = (
    Page("runs", "/runs", runs, title="Runs", query=frozenset({"workflow", "state", "cursor"}), every=2.0),
    Page("run", "/runs/{run_id}", run, query=frozenset({"state"}), texts={"graph": _states}),
    Page("run_node", "/runs/{run_id}/nodes/{path:path}", node, query=frozenset({"state"}), texts={"graph": _states}),
)
