"""`headrace flows list`, `export`, `activate` and `deactivate`: the flows that are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace import App
from headrace.apps.flows.commands.telling import (
    OutputError,
    json_option,
    json_text,
    tell,
    tell_json,
    tell_table,
    write_json,
)
from headrace.apps.flows.form import Flow
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.opening import flows_app
from headrace.apps.flows.storing import flow_of, load_flow, stored_flows, switch_flow
from headrace.apps.noting import noted
from headrace.model.run import StoredWorkflow
from headrace.nodes.base import Shape
from headrace.nodes.registry import find_type

T = TypeVar("T")

COLUMNS = ("FLOW", "WORKFLOW", "VERSION", "NODES", "TRIGGERS", "STARTS", "STORED")
_NAME = click.argument("name")


def with_app(work: Callable[[App], Awaitable[T]]) -> T:
    """Run `work` on the open app of flows; what a command changes there is noted in the audit."""

    async def run() -> T:
        app = flows_app()
        async with app, noted(app):
            return await work(app)

    return asyncio.run(run())


@click.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the flows that are stored.

    \b
    Example:
      headrace flows list
    """
    found = with_app(_read_all)
    if as_json:
        tell_json([_document(stored, flow) for stored, flow in found])
    elif not found:
        tell("There are no flows yet; `headrace flows import FILE` stores some.")
    else:
        tell_table(COLUMNS, [_row(_document(stored, flow)) for stored, flow in found])


async def _read_all(app: App) -> list[tuple[StoredWorkflow, Flow]]:
    every = await app.runtime.stores.workflows.list_workflows()
    return [(stored, flow) for stored in every if (flow := flow_of(stored)) is not None]


def _document(stored: StoredWorkflow, flow: Flow) -> dict[str, Any]:
    return {
        "flow": flow.name, "id": flow.id or None, "workflow": stored.name, "version": stored.version,
        "nodes": len(flow.nodes), "triggers": _triggers(flow), "active": flow.active,
        "startable": stored.active, "stored_at": stored.created_at.isoformat(),
    }  # fmt: skip


def _triggers(flow: Flow) -> list[str]:
    kinds = [find_type(node.type, node.parameters) for node in flow.nodes.values() if not node.disabled]
    return list(dict.fromkeys(kind.name for kind in kinds if kind is not None and kind.shape is Shape.TRIGGER))


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    starts = "by schedules and webhooks" if one["active"] else "by hand"
    stored_at = one["stored_at"][:19].replace("T", " ")
    return (
        one["flow"], one["workflow"], one["version"], one["nodes"], ", ".join(one["triggers"]),
        starts if one["startable"] else "not at all: headrace workflow activate", stored_at,
    )  # fmt: skip


@click.command()
@click.argument("name", required=False)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file.")
@click.option(
    "--all", "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Write every stored flow to a file of its own in this folder.",
)  # fmt: skip
@json_option
def export(name: str | None, out: Path | None, folder: Path | None, as_json: bool) -> None:
    """Write a stored flow as the JSON that it was imported from, with every field that is not known here.

    Without --out it is written to standard output; --json writes it in one line, or tells which files were written.

    \b
    Examples:
      headrace flows export "Daily report" --out report.json
      headrace flows export --all exports/
    """
    if (name is None) == (folder is None) or (folder is not None and out is not None):
        raise click.UsageError("give the name of a flow, perhaps with --out FILE, or --all DIR")
    if folder is not None:
        _export_all(folder, as_json=as_json)
        return
    assert name is not None
    document = with_app(lambda app: load_flow(app, name)).document()
    if out is not None:
        write_json(out, document)
        _tell_written([out], as_json=as_json)
    elif as_json:
        tell_json(document)
    else:
        click.echo(json_text(document), nl=False)


def _export_all(folder: Path, *, as_json: bool) -> None:
    flows = with_app(stored_flows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"--all must be a folder that can be written ({error.strerror}); name another") from None
    written = []
    for name, flow in flows.items():
        written.append(folder / f"{name.removeprefix('flow.')}.json")
        write_json(written[-1], flow.document())
    _tell_written(written, as_json=as_json)


def _tell_written(files: list[Path], *, as_json: bool) -> None:
    if as_json:
        tell_json({"files": [str(file) for file in files]})
        return
    for file in files:
        tell(f"written: {file}")
    if not files:
        tell("There are no flows yet; nothing was written.")


@click.command()
@_NAME
@json_option
def activate(name: str, as_json: bool) -> None:
    """Let the schedules and webhooks of a stored flow start it; workers heed it within a minute.

    \b
    Example:
      headrace flows activate "Daily report"
    """
    _switch(name, active=True, as_json=as_json)


@click.command()
@_NAME
@json_option
def deactivate(name: str, as_json: bool) -> None:
    """Let no schedule and no webhook of a stored flow start it any more; workers heed it within a minute.

    It can still be run by hand and by other flows; what runs goes on.

    \b
    Example:
      headrace flows deactivate "Daily report"
    """
    _switch(name, active=False, as_json=as_json)


def _switch(name: str, *, active: bool, as_json: bool) -> None:
    flow, version = with_app(lambda app: switch_flow(app, name, active=active))
    if as_json:
        tell_json({"flow": flow.name, "workflow": workflow_name(flow.name), "active": active, "version": version})
    elif active and not set(_triggers(flow)) & {"schedule", "cron", "interval", "webhook"}:
        tell("active, though it has no schedule and no webhook that could start it")
    else:
        tell("active" if active else "inactive: it is started by hand and by other flows alone")
