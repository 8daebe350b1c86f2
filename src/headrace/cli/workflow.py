"""`headrace workflow`: definitions of workflows; see `workflow_start` for starting runs of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.opening import with_stores
from headrace.cli.output import json_option, print_facts, print_json, print_table, print_text, shorten
from headrace.cli.tables import Give
from headrace.cli.values import WholeType
from headrace.cli.workflow_start import start
from headrace.engine.workflows.documents import workflow_document
from headrace.model.errors import NotFoundError
from headrace.model.run import StoredWorkflow

if TYPE_CHECKING:
    from headrace.ports.stores import Stores

COLUMNS = ("WORKFLOW", "VERSION", "STATE", "NODES", "STORED")
_GIVE = Give(first=("NODES", "STORED", "VERSION"))
_NODES, _EDGES = ("NODE", "KIND", "WHAT", "OPTIONS"), ("FROM", "TO", "PORT", "WHEN")
#: Members of a node that stand in columns of their own, or are too large for any.
_APART = ("id", "kind", "task", "body")
_NAME = click.argument("name")


@click.group()
def workflow() -> None:
    """Definitions of workflows: list, show, switch on and off, start."""


@workflow.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the latest version of every workflow that is stored; one is stored with its first start.

    \b
    Example:
      headrace workflow list
    """
    found = with_stores(lambda stores: stores.workflows.list_workflows())
    if as_json:
        print_json([workflow_document(one) for one in found])
    elif not found:
        print_text("There are no workflows yet; one is stored when it is started for the first time.")
    else:
        print_table(COLUMNS, [_row(one) for one in found], _GIVE)


def _row(stored: StoredWorkflow) -> tuple[object, ...]:
    nodes = len(json.loads(stored.graph)["nodes"])
    return stored.name, stored.version, _state(stored), nodes, stored.created_at


def _state(stored: StoredWorkflow) -> str:
    return "active" if stored.active else "inactive"


@workflow.command()
@_NAME
@click.option(
    "--version", metavar="N", type=WholeType("version", 1), show_default=False, help="Which one.  [default: latest]"
)
@json_option
def show(name: str, version: int | None, as_json: bool) -> None:
    """Show the graph of a workflow: its nodes and the edges between them.

    --json writes the graph in its JSON form, with graphs within nodes.

    \b
    Example:
      headrace workflow show digest
    """

    async def read(stores: Stores) -> StoredWorkflow:
        found = await stores.workflows.get_workflow(name, version)
        if found is None:
            which = f"workflow {name!r}" if version is None else f"version {version} of workflow {name!r}"
            raise NotFoundError(f"no {which} is stored; `headrace workflow list` shows those there are")
        return found

    found = with_stores(read)
    if as_json:
        print_json(workflow_document(found))
    else:
        _print_workflow(found)


def _print_workflow(stored: StoredWorkflow) -> None:
    graph = json.loads(stored.graph)
    print_facts({
        "workflow": stored.name,
        "version": stored.version,
        "state": _state(stored),
        "stored": stored.created_at,
        "tags": ", ".join(graph.get("tags", ())) or None,
        "on failure": graph.get("on_failure"),
        "output": shorten(_text(graph["output"])) if "output" in graph else None,
    })  # fmt: skip
    print_text("")
    print_table(_NODES, [_node_row(node) for node in graph["nodes"]], Give(first=("OPTIONS",), prose=("OPTIONS",)))
    if graph.get("edges"):
        print_text("")
        print_table(_EDGES, [_edge_row(edge) for edge in graph["edges"]], Give(prose=("WHEN",)))


def _node_row(node: dict[str, Any]) -> tuple[object, ...]:
    options = ", ".join(f"{name}={_text(value)}" for name, value in node.items() if name not in _APART)
    within = "" if "body" not in node else f"{len(node['body']['nodes'])} nodes"
    return node["id"], node.get("kind", "task"), node.get("task", within), shorten(options, 200)


def _edge_row(edge: dict[str, Any]) -> tuple[object, ...]:
    condition = edge.get("when")
    return edge["from"], edge["to"], edge.get("port", ""), "" if condition is None else shorten(_text(condition), 200)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@workflow.command()
@_NAME
@json_option
def activate(name: str, as_json: bool) -> None:
    """Let runs of a workflow be started again.

    \b
    Example:
      headrace workflow activate digest
    """
    _set_active(name, active=True, as_json=as_json)


@workflow.command()
@_NAME
@json_option
def deactivate(name: str, as_json: bool) -> None:
    """Let no run of a workflow be started any more, whatever its version; those that run go on.

    \b
    Example:
      headrace workflow deactivate digest
    """
    _set_active(name, active=False, as_json=as_json)


def _set_active(name: str, *, active: bool, as_json: bool) -> None:
    with_stores(lambda stores: stores.workflows.set_workflow_active(name, active=active))
    if as_json:
        print_json({"workflow": name, "active": active})
    else:
        print_text("active" if active else "inactive: starts of it are refused; what runs goes on")


workflow.add_command(start)
