"""`headrace flows run`: a run of a flow, worked in this process and shown as it goes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from headrace import App, ConfigError, HeadraceError, ResultTimeoutError
from headrace.apps.flows.commands.bars import new_bar
from headrace.apps.flows.commands.telling import (
    OutputError,
    json_option,
    shorten,
    tell,
    tell_json,
    tell_table,
    write_json,
)
from headrace.apps.flows.naming import ids_of
from headrace.apps.flows.opening import flows_app
from headrace.apps.flows.running import Asked, Started, follow, queues_of, start_flow, wait_for
from headrace.apps.flows.starting import items_of, read_input
from headrace.apps.flows.states import NodeResult, read_results
from headrace.model.durations import parse_duration
from headrace.model.run import Level
from headrace.nodes.base import Items, Shape

COLUMNS = ("NODE", "TYPE", "STATE", "ITEMS", "TOOK", "ERROR")
WORKER = "headrace worker headrace.apps.flows.worker:app"
#: So many items are shown to people, each so long.
_MOST_ITEMS, _LONGEST = 20, 300

RUN_HELP = f"""Run a flow and show what its nodes did, and the items of the last ones.

FLOW is a file of JSON, or the name of a flow that is stored. Flows that it runs are looked for in the folder of its
file, then among those that are stored. The run is worked by this process, and by workers of flows elsewhere; it is
durable: after Ctrl-C or a crash `{WORKER}` works it on.

--input is a list of items, a list of plain objects, or one of these; without it the flow begins with one empty item.
$vars are those of [flows.vars], and over them those of --vars. A run of a file is kept under the name draft.NAME: what
is stored under the flow's own name stays as it is.

\b
Examples:
  headrace flows run prices.json --input cities.json
  echo '[{{"city": "Ulm"}}]' | headrace flows run prices.json --input - --json
  headrace flows run "Daily report" --trigger "Every morning" --timeout 10m --out report.json
  headrace flows run "Daily report" --level node_level --detach
"""


@dataclass(frozen=True, slots=True)
class Telling:
    """How it is waited for, and what is written in the end."""

    as_json: bool
    detach: bool = False
    timeout: timedelta | None = None
    out: Path | None = None


@click.command("run", help=RUN_HELP)
@click.argument("flow", metavar="FLOW.json|NAME")
@click.option("--input", "given", metavar="IN.json", show_default=False, help="Items to begin with; - reads stdin.")
@click.option("--trigger", metavar="NODE", show_default=False, help="The trigger that begins.  [default: the first]")
@click.option("--vars", "variables", metavar="VARS.json", show_default=False, help="An object of values of $vars.")
@click.option(
    "--level", type=click.Choice([level.value for level in Level]), show_default=False,
    help="One job for the whole run, or one for each node.  [default: as the settings choose]",
)  # fmt: skip
@click.option("--detach", is_flag=True, show_default=False, help=f"Only start it, for workers: {WORKER}")
@click.option(
    "--timeout", metavar="TIME", show_default=False, help="How long to wait; the run is not lost.  [default: no end]"
)
@click.option(
    "--out", metavar="OUT.json", type=click.Path(path_type=Path, dir_okay=False), help="Write the items to a file."
)
@click.option(
    "--node", "nodes", metavar="NODE", multiple=True, show_default=False,
    help="Show the items of this node rather than those of the last ones. Repeatable.",
)  # fmt: skip
@json_option
def run(  # noqa: PLR0913 - click hands over one per option
    flow: str, given: str | None, trigger: str | None, variables: str | None, level: str | None, detach: bool,
    timeout: str | None, out: Path | None, nodes: tuple[str, ...], as_json: bool,
) -> int:  # fmt: skip
    """Run a flow and return the exit code."""
    if detach and (timeout or out or nodes):
        raise click.UsageError("--detach waits for nothing: leave out --timeout, --out and --node")
    if out is not None and not out.absolute().parent.is_dir():
        raise OutputError(
            f"--out must be a file in a folder that is there, got {out}; make the folder, or name another"
        )
    items = [] if given is None else items_of(read_input(given))
    named = None if variables is None else read_input(variables)
    asked = Asked(flow, items, trigger, named, None if level is None else Level(level), nodes)
    limit = None if timeout is None else parse_duration(timeout, field="--timeout")
    return asyncio.run(_run(asked, Telling(as_json, detach, limit, out)))


async def _run(asked: Asked, telling: Telling) -> int:
    # What failed is in the table.
    logging.getLogger("headrace.jobs").setLevel(logging.ERROR)
    app = flows_app()
    if telling.detach:
        if app.settings.queue.type == "memory":
            raise ConfigError("the memory store ends with this process, and the run with it; leave out --detach")
        async with app:
            return _detached(await start_flow(app, asked), telling)
    async with app:
        started = await start_flow(app, asked)
        if not telling.as_json:
            tell(f"run {started.run.id}", err=True)
            for note in started.notes:
                tell(f"note: {note}", err=True)
        items, error = await _worked(app, started, telling)
        results = await read_results(app, started.run, started.checked.flow, asked.nodes)
        state = str(await started.run.status())
    document = document_of(started, state, results, error) | ({} if error else {"items": items})
    _finish(document, results, telling)
    return 1 if error else 0


def _detached(started: Started, telling: Telling) -> int:
    if telling.as_json:
        tell_json({"run": str(started.run.id), "flow": started.checked.flow.name, "notes": started.notes})
    else:
        for note in started.notes:
            tell(f"note: {note}", err=True)
        tell(str(started.run.id))
    return 0


async def _worked(app: App, started: Started, telling: Telling) -> tuple[list[Any], HeadraceError | None]:
    """Work a run in this process and wait for it; return its items, or why it failed."""
    assert started.checked.plan is not None
    seconds = None if telling.timeout is None else telling.timeout.total_seconds()
    async with app.worker(queues=queues_of(app)):
        bar = new_bar(ids_of(started.checked.flow.nodes), started.checked.plan.block.names)
        waiting = asyncio.create_task(wait_for(started.run, seconds))
        try:
            if bar is not None:
                await follow(started.run, waiting, bar.show)
            return await waiting
        except (asyncio.CancelledError, ResultTimeoutError):
            if app.settings.queue.type != "memory":
                shown = f"`headrace run show {started.run.id}` shows it, `{WORKER}` works it on"
                tell(f"\nrun {started.run.id} has not ended, and nothing of it is lost: {shown}", err=True)
            raise
        finally:
            waiting.cancel()
            if bar is not None:
                bar.close()


def document_of(
    started: Started, state: str, results: Sequence[NodeResult], error: HeadraceError | None
) -> dict[str, Any]:
    """Return what --json writes of a run, without its items."""
    return {
        "run": str(started.run.id), "flow": started.checked.flow.name, "state": state,
        "nodes": [result.to_json() for result in results], "notes": started.notes,
        "error": None if error is None else _error_of(started, results, error),
    }  # fmt: skip


def _error_of(started: Started, results: Sequence[NodeResult], error: HeadraceError) -> dict[str, Any]:
    """Return why a run failed, with the node that did: of loops the one within."""
    failed = [one for one in results if one.state == "failed"]
    assert started.checked.plan is not None
    types = started.checked.plan.types
    first = next((one for one in failed if types[one.name].shape is not Shape.LOOP), next(iter(failed), None))
    if first is None:
        return {"code": error.code, "message": str(error), "node": None}
    said = f"node {first.name!r} failed: {first.error}; `headrace run show {started.run.id}` has the whole run"
    return {"code": error.code, "message": said, "node": first.name}


def _finish(document: dict[str, Any], results: Sequence[NodeResult], telling: Telling) -> None:
    chosen = {result.name: result.out for result in results if result.out is not None}
    items = document.get("items", [])
    if telling.out is not None:
        write_json(telling.out, chosen or items)
    if telling.as_json:
        tell_json(document)
        return
    tell_table(COLUMNS, [_row(result) for result in results])
    tell()
    if telling.out is not None:
        tell(f"written: {telling.out}")
    elif chosen:
        _tell_chosen(chosen)
    elif document["error"] is None:
        _tell_items("the last nodes", items)
    if document["error"] is not None:
        tell(f"Error: {document['error']['message']}", err=True)


def _tell_chosen(chosen: dict[str, list[Items]]) -> None:
    for name, ports in chosen.items():
        for port, found in enumerate(ports):
            _tell_items(f"{name}, output {port + 1}" if len(ports) > 1 else name, found)


def _row(result: NodeResult) -> tuple[object, ...]:
    took = "" if result.seconds is None else f"{result.seconds:.2f}s"
    ports = "/".join(map(str, result.items)) + (f" ({result.failed} failed)" if result.failed else "")
    return result.name, result.type, result.state, ports, took, shorten(result.error or "", 200)


def _tell_items(of: str, items: Sequence[dict[str, Any]]) -> None:
    tell(f"{len(items):,} {'item' if len(items) == 1 else 'items'} of {of}" + (":" if items else ""))
    for item in items[:_MOST_ITEMS]:
        tell("  " + shorten(json.dumps(item.get("json"), ensure_ascii=False), _LONGEST))
    if len(items) > _MOST_ITEMS:
        tell(f"  … and {len(items) - _MOST_ITEMS:,} more; --json or --out OUT.json writes all")
