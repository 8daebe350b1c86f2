"""Runs and workflows as JSON documents: what the command line and the service write of them."""

from __future__ import annotations

import json
from typing import Any

from headrace.engine.queries import to_json
from headrace.engine.workflows.tree import RunTree, TreeNode
from headrace.model.errors import NotFoundError
from headrace.model.graph.paths import scope_of
from headrace.model.run import RunView, StoredWorkflow


def workflow_document(stored: StoredWorkflow) -> dict[str, Any]:
    """Return a definition with its graph in the JSON form."""
    document: dict[str, Any] = to_json(stored)
    return document | {"graph": json.loads(stored.graph)}


def run_document(view: RunView) -> dict[str, Any]:
    """Return what a list of runs says of one: everything but its input, its output and its nodes."""
    document: dict[str, Any] = to_json(view)
    context = json.loads(document.pop("context"))
    del document["input"], document["output"]
    return document | {name: context.get(name) for name in ("user_id", "correlation_id", "metadata")}


def tree_document(tree: RunTree, given: Any, result: Any) -> dict[str, Any]:
    """Return a run with its nodes; `given` and `result` are its whole input and output."""
    nodes = [node_document(node) for node in tree.nodes]
    return run_document(tree.run) | {"input": given, "output": result, "nodes": nodes}


def node_document(node: TreeNode) -> dict[str, Any]:
    """Return a node with what is within it; large outputs stand as references."""
    output = None if node.output is None else json.loads(node.output)
    return node_facts(node) | {"output": output, "nodes": [node_document(child) for child in node.children]}


def node_facts(node: TreeNode) -> dict[str, Any]:
    """Return what is said of a node besides its output and what is within it."""
    return {
        "path": node.path,
        "kind": node.kind,
        "task": node.task,
        "state": node.state,
        "attempts": node.attempts,
        "started_at": node.started_at,
        "finished_at": node.finished_at,
        "reused": node.reused,
        "waits_for": node.waits_for,
        "again_at": node.again_at,
        "error": to_json(node.error),
    }


def find_node(tree: RunTree, path: str) -> TreeNode:
    """Return the node at a path. Raises NotFoundError naming those of the graph."""
    todo = list(tree.nodes)
    for node in todo:  # which grows
        # An entry of one node is shown as that node.
        if node.path == path or (path.endswith("]") and scope_of(node.path) == path):
            return node
        todo += node.children
    known = ", ".join(node.path for node in tree.nodes)
    raise NotFoundError(
        f"no node {path!r} in run {tree.run.id}, or it has not begun; its nodes are: {known}; entries and rounds are "
        f"counted from 0, as each[3], and what is within stands behind a slash, as each[3]/parse"
    )
