"""`headrace run`: look at runs of workflows, cancel them, repeat them, send them signals."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import click

from headrace.app import App
from headrace.cli.opening import with_app, with_stores
from headrace.cli.output import age, json_option, print_json, print_table, print_text
from headrace.cli.run_tree import print_node, print_run
from headrace.cli.tables import Give
from headrace.cli.values import IdType, JsonType, WholeType
from headrace.engine.workflows.documents import find_node, node_document, run_document, tree_document
from headrace.engine.workflows.tree import RunTree, TreeNode
from headrace.model.errors import ConflictError
from headrace.model.job import CancelAnswer
from headrace.model.run import RunState, RunView

COLUMNS = ("RUN", "WORKFLOW", "VERSION", "STATE", "LEVEL", "CREATED", "TOOK", "KEY", "REPEATS")
_GIVE = Give(first=("REPEATS", "KEY", "VERSION", "TOOK", "LEVEL", "CREATED"))
_ID = click.argument("run_id", metavar="ID", type=IdType())


@click.group()
def run() -> None:
    """Runs of workflows: look at them as trees, cancel them, repeat them, send them signals."""


@run.command("list")
@click.option("--workflow", metavar="NAME", show_default=False, help="Only runs of this workflow.")
@click.option(
    "--state", type=click.Choice([state.value for state in RunState]), show_default=False, help="Only runs in it."
)
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=50, help="How many, newest first.")
@json_option
def list_(workflow: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List runs, newest first.

    \b
    Examples:
      headrace run list --limit 10
      headrace run list --workflow digest --state failed
    """
    wanted = None if state is None else RunState(state)
    runs = with_stores(lambda stores: stores.runs.list_runs(workflow=workflow, state=wanted, limit=limit))
    if as_json:
        print_json([run_document(view) for view in runs])
    elif not runs:
        print_text("There are no such runs." if workflow or state else "There are no runs.")
    else:
        print_table(COLUMNS, [_row(view) for view in runs], _GIVE)


def _row(view: RunView) -> tuple[object, ...]:
    took = "" if view.finished_at is None else age(view.finished_at - view.created_at)
    return (
        str(view.id), view.workflow, view.version, view.state, view.level, view.created_at, took, view.key,
        None if view.rerun_of is None else str(view.rerun_of),
    )  # fmt: skip


@run.command()
@_ID
@click.option("--node", metavar="PATH", show_default=False, help="Only this node and what is within it, as each[3].")
@click.option("--all", "whole", is_flag=True, show_default=False, help="Every entry of maps with more than 10.")
@json_option
def show(run_id: UUID, node: str | None, whole: bool, as_json: bool) -> None:
    """Show a run as the tree of its nodes: states, times, attempts, errors, and what it waits for.

    It says at which level the run is worked and why, and which nodes kept the output of the run that it repeats. Of
    maps with more than 10 entries the counts and those that failed are shown. Long values are cut; --json writes them
    and all entries whole, but outputs of nodes above 64 KiB as references: --json --node PATH writes that of one whole.

    \b
    Examples:
      headrace run show 01980000-0000-7000-8000-000000000000
      headrace run show 01980000-0000-7000-8000-000000000000 --node each[3]
    """

    async def read(app: App) -> tuple[RunTree, TreeNode | None, Any]:
        tree = await app.find_run(run_id).tree()
        found = None if node is None else find_node(tree, node)
        return tree, found, await _document(app, tree, found) if as_json else None

    tree, found, document = with_app(read)
    if as_json:
        print_json(document)
    elif found is not None:
        print_node(found, whole=whole)
    else:
        print_run(tree, whole=whole)


async def _document(app: App, tree: RunTree, node: TreeNode | None) -> dict[str, Any]:
    values = app.runtime.means.values
    if node is not None:
        output = None if node.output is None else await values.load(node.output)
        return {"run": tree.run.id} | node_document(node) | {"output": output}
    view = tree.run
    output = None if view.output is None else await values.load(view.output)
    return tree_document(tree, await values.load(view.input), output)


@run.command()
@_ID
@json_option
def cancel(run_id: UUID, as_json: bool) -> None:
    """Cancel a run: what waits of it is cancelled at once, what runs is asked to stop.

    \b
    Example:
      headrace run cancel 01980000-0000-7000-8000-000000000000
    """

    async def stop(app: App) -> tuple[CancelAnswer, RunState]:
        handle = app.find_run(run_id)
        return await handle.cancel(), await handle.status()

    answer, state = with_app(stop)
    if as_json:
        print_json({"run": run_id, "answer": answer, "state": state})
    elif answer is CancelAnswer.ALREADY_FINAL:
        print_text(f"nothing to cancel: it had ended as {state} before")
    elif state.final:
        print_text(str(state))
    else:
        print_text("what runs of it was asked to stop; `headrace run show` tells when it has")


@run.command()
@_ID
@click.option("--from", "first", metavar="NODE", show_default=False, help="Run this node again in any case.")
@json_option
def rerun(run_id: UUID, first: str | None, as_json: bool) -> None:
    """Run the graph of a run that has ended once more, on the same input, and print the new run's id.

    A node that succeeded and is given what it was given before keeps its output, and nothing is paid for it again. With
    --from that node runs again, and those behind it where its output has changed; each[3] is one entry of a map.

    \b
    Examples:
      headrace run rerun 01980000-0000-7000-8000-000000000000
      headrace run rerun 01980000-0000-7000-8000-000000000000 --from summarise
    """

    async def repeat(app: App) -> UUID:
        return (await app.find_run(run_id).rerun(first)).id

    new_id = with_app(repeat)
    if as_json:
        print_json({"run": new_id, "rerun_of": run_id, "rerun_from": first})
    else:
        print_text(str(new_id))


@run.command()
@click.argument("key")
@click.argument("payload", metavar="[JSON]", type=JsonType(), default="null")
@json_option
def signal(key: str, payload: Any, as_json: bool) -> None:
    """Send a signal: nodes and jobs that wait for KEY run on with JSON, now or when they come to wait.

    A key has its signal once: a second one changes nothing and ends with 1. `-` reads JSON from standard input.

    \b
    Examples:
      headrace run signal approve-7
      headrace run signal approve-7 '{"by": "ann"}'
    """
    if not with_app(lambda app: app.signal(key, payload)):
        raise ConflictError(f"the signal {key!r} was sent before; the first one stands, so this one changed nothing")
    if as_json:
        print_json({"key": key, "sent": True})
    else:
        print_text("sent")
