"""A run on the terminal: its facts, and its nodes as a tree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from headrace.cli.output import age, print_facts, print_table, print_text, shorten
from headrace.cli.tables import Give
from headrace.engine.workflows.tree import RunTree, TreeNode
from headrace.model.job import JobError
from headrace.model.reference import parse_reference
from headrace.model.run import NodeState, RunView

COLUMNS = ("NODE", "KIND", "STATE", "TOOK", "ATTEMPTS", "NOTE")
_GIVE = Give(first=("ATTEMPTS", "KIND", "TOOK"), prose=("NOTE",))
#: Of maps with more entries than this, counts are shown, and at most so many of those that failed.
MOST_ENTRIES = 10
#: States of nodes in the order in which they are counted.
_ORDER = list(NodeState)


def print_run(tree: RunTree, *, whole: bool) -> None:
    """Write a run and its nodes for people; `whole` shows every entry of large maps."""
    view = tree.run
    counts = Counter(node.state for node in tree.nodes)
    print_facts({
        "run": view.id,
        "workflow": f"{view.workflow}, version {view.version}",
        "state": view.state,
        "level": f"{view.level}: {view.reason}",
        "key": view.key,
        "repeats": _repeats(view),
        "created": view.created_at,
        "finished": view.finished_at,
        "took": None if view.finished_at is None else age(view.finished_at - view.created_at),
        "input": shown_value(view.input),
        "output": None if view.output is None else shown_value(view.output),
        "error": shown_error(view.error),
        "nodes": _counted(counts),
    })  # fmt: skip
    print_text("")
    _print_nodes(tree.nodes, "", whole=whole)


def print_node(node: TreeNode, *, whole: bool) -> None:
    """Write one node and what is within it for people."""
    print_facts({
        "node": node.path,
        "kind": node.kind,
        "task": node.task,
        "state": node.state,
        "attempts": node.attempts or None,
        "started": node.started_at,
        "finished": node.finished_at,
        "took": _took(node) or None,
        "waits for": None if node.waits_for is None else f"signal {node.waits_for}",
        "again at": node.again_at,
        "reused": "from the run that this one repeats" if node.reused else None,
        "output": None if node.output is None else shown_value(node.output),
        "error": shown_error(node.error),
    })  # fmt: skip
    if node.children:
        print_text("")
        _print_nodes(node.children, node.path, whole=whole)


def shown_value(text: str) -> str:
    """Return a stored value, JSON text, as people see it.

    >>> shown_value('{"$blob":{"key":"runs/1/a","bytes":70000,"sha256":"%s"}}' % ("ab" * 32))
    '70,000 bytes in the blob storage; --json shows them'
    """
    value = json.loads(text)
    reference = parse_reference(value)
    if reference is not None:
        return f"{reference.bytes:,} bytes in the blob storage; --json shows them"
    return shorten(json.dumps(value, ensure_ascii=False))


def shown_error(error: JobError | None) -> str | None:
    """Return an error as people see it."""
    return None if error is None else shorten(f"{error.kind}: {error.message}")


def _repeats(view: RunView) -> str | None:
    if view.rerun_of is None:
        return None
    return f"{view.rerun_of}, from node {view.rerun_from}" if view.rerun_from else f"{view.rerun_of}"


def _counted(counts: Counter[NodeState]) -> str:
    return ", ".join(f"{counts[state]:,} {state}" for state in _ORDER if counts[state])


def _print_nodes(nodes: Sequence[TreeNode], above: str, *, whole: bool) -> None:
    print_table(COLUMNS, list(_rows(nodes, above, 0, whole=whole)), _GIVE)


def _rows(nodes: Sequence[TreeNode], above: str, depth: int, *, whole: bool) -> Iterator[tuple[object, ...]]:
    for node in nodes:
        yield _row(node, above, depth)
        shown = node.children if whole or len(node.children) <= MOST_ENTRIES else _failed(node)
        yield from _rows(shown, node.path, depth + 1, whole=whole)
        if len(shown) < len(node.children):
            counts = Counter(child.state for child in node.children)
            of = "of all" if shown else "entries"
            yield ("  " * (depth + 1) + "…", "", "", "", "", f"{of} {len(node.children):,}: {_counted(counts)}")


def _failed(node: TreeNode) -> list[TreeNode]:
    return [child for child in node.children if child.state is NodeState.FAILED][:MOST_ENTRIES]


def _row(node: TreeNode, above: str, depth: int) -> tuple[object, ...]:
    name = "  " * depth + node.path[len(above) :].removeprefix("/")
    kind = node.kind if node.task is None else f"{node.kind} {node.task}"
    return name, kind, node.state, _took(node), node.attempts or "", _note(node)


def _took(node: TreeNode) -> str:
    if node.started_at is None:
        return ""
    if node.finished_at is not None:
        return age(node.finished_at - node.started_at)
    return "" if node.state.final else f"{age(datetime.now(UTC) - node.started_at)} so far"


def _note(node: TreeNode) -> str:
    if node.waits_for is not None:
        return f"waits for signal {node.waits_for}"
    error = "" if node.error is None else f"{node.error.kind}: {node.error.message}"
    if node.again_at is not None:
        return shorten(f"again at {_clock(node.again_at)}" + (f" after {error}" if error else ""), 200)
    return shorten(error, 200) if error else "reused" if node.reused else ""


def _clock(at: datetime) -> str:
    """Return a time as people here read it, with its day where that is another than today."""
    here = at.astimezone()
    return f"{here:%H:%M:%S}" if here.date() == datetime.now(UTC).astimezone().date() else f"{here:%Y-%m-%d %H:%M:%S}"
