"""`headrace flows validate`: why flows cannot run, all of it at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from headrace.apps.flows.checks import Checked, check_flow
from headrace.apps.flows.commands.telling import broken_types, json_option, tell, tell_broken, tell_json
from headrace.apps.flows.importing import unstorable
from headrace.apps.flows.opening import flows_app
from headrace.apps.flows.sources import Source, Sources, either, read_sources
from headrace.apps.flows.starting import alarm_of
from headrace.apps.flows.storing import finder, stored_flows

PATHS = click.argument("paths", metavar="FILE|DIR…", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.command()
@PATHS
@click.option("--store", is_flag=True, show_default=False, help="Look for flows that they run in the store as well.")
@json_option
def validate(paths: tuple[Path, ...], store: bool, as_json: bool) -> int:
    """Tell every reason why flows cannot run: the field, the node, its type and place, and what to use instead.

    Nothing is stored. Of folders every file *.json is read, however deep it lies. Flows that others run are looked for
    among those that are given; with --store also among those that are stored. Ends with 1 when one cannot run.

    \b
    Examples:
      headrace flows validate prices.json
      headrace flows validate flows/ --json
    """
    sources = read_sources(paths)
    found = {source.flow.name: source.flow for source in sources.flows if source.flow is not None}
    known = asyncio.run(_stored()) if store else {}
    find = either(finder(found), finder(known))
    judged = []
    for source in sources.flows:
        checked = None if source.flow is None else check_flow(source.flow, find)
        alarm = "" if source.flow is None else alarm_of(source.flow, find)[1]
        judged.append((source, checked, alarm))
    documents = [document_of(*one) for one in judged]
    if as_json:
        tell_json({"flows": documents, **others_of(sources)})
    else:
        _tell(documents, sources)
    return 0 if all(one["runs"] for one in documents) and not sources.unreadable else 1


async def _stored() -> dict[str, Any]:
    app = flows_app()
    async with app:
        return await stored_flows(app)


def document_of(source: Source, checked: Checked | None, alarm: str) -> dict[str, Any]:
    """Return what is told of one flow; `alarm`: what is wrong with the flow that follows its failure."""
    if checked is None:
        assert source.fault is not None
        fault = {"field": source.fault.field, "node": None, "type": None, "position": None, "instead": None}
        problems: list[Any] = [fault | {"message": str(source.fault)}]
        return {"file": source.place, "flow": source.name or None, "runs": False, "problems": problems, "notes": []}
    notes = [str(note) for note in checked.notes] + ([f"flow.settings.errorWorkflow: {alarm}"] if alarm else [])
    found = checked.problems or unstorable(checked)
    return {
        "file": source.place, "flow": checked.flow.name, "runs": not found,
        "problems": [problem.to_json() | {"text": str(problem)} for problem in found], "notes": notes,
    }  # fmt: skip


def others_of(sources: Sources) -> dict[str, Any]:
    """Return what is told of files that hold no flows, and of packages whose node types cannot be used."""
    unreadable = [{"file": place, "message": message} for place, message in sources.unreadable]
    return {"not_flows": list(sources.passed_over), "unreadable": unreadable, "broken": broken_types()}


def _tell(documents: Sequence[dict[str, Any]], sources: Sources) -> None:
    for one in documents:
        tell(f"{one['file']}: {one['flow'] or 'a flow'!r} {'can run' if one['runs'] else 'cannot run'}")
        for problem in one["problems"]:
            tell(f"  {problem.get('text') or problem['message']}")
        for note in one["notes"]:
            tell(f"  note: {note}")
    tell_others(sources)
    runs = sum(one["runs"] for one in documents)
    tell(f"{runs} of {len(documents)} {'flow' if len(documents) == 1 else 'flows'} can run")


def tell_others(sources: Sources) -> None:
    """Write the files that hold no flows, and packages whose node types cannot be used."""
    for place, message in sources.unreadable:
        tell(f"{place}: cannot be read: {message}")
    for place in sources.passed_over:
        tell(f"{place}: no flow, passed over")
    tell_broken()
