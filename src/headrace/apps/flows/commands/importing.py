"""`headrace flows import`: store flows that can run, and say of the others why they cannot."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from headrace.apps.flows.commands.telling import json_option, shorten, tell, tell_json, tell_table, write_json
from headrace.apps.flows.commands.validate import PATHS, others_of, tell_others
from headrace.apps.flows.importing import (
    CANNOT,
    Imported,
    Reason,
    import_flows,
    missing_types,
    other_reasons,
)
from headrace.apps.flows.opening import flows_app
from headrace.apps.flows.sources import Sources, read_sources
from headrace.apps.noting import noted

#: Of one flow so many problems are shown, and so many reasons of all.
_MOST_PROBLEMS, _MOST_REASONS = 5, 15


@click.command("import")
@PATHS
@click.option(
    "--activate", is_flag=True, show_default=False,
    help="Let schedules and webhooks start them.  [default: as their files say]",
)  # fmt: skip
@click.option("--dry-run", "dry", is_flag=True, show_default=False, help="Store nothing; only tell what would be.")
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as JSON too."
)
@json_option
def import_(paths: tuple[Path, ...], activate: bool, dry: bool, out: Path | None, as_json: bool) -> int:
    """Store flows of JSON as n8n exports it: one flow, a list of them, {"data": […]}, or folders of such files.

    Those that can run are stored, whatever the others are; they are kept as they were written, unknown fields too.
    Of the others every reason is told, and which node types are missing most often, with what to use instead. An equal
    flow is stored once; of several that would be stored under one name none is. Ends with 0 when all are stored, else
    with 1.

    \b
    Examples:
      headrace flows import prices.json --activate
      headrace flows import exports/ --dry-run --out report.json
    """
    sources = read_sources(paths)
    found = asyncio.run(_import(sources, activate=activate, dry=dry))
    document = document_of(found, sources, dry=dry)
    if out is not None:
        write_json(out, document)
    if as_json:
        tell_json(document)
    else:
        _tell(found, sources, document)
        if out is not None:
            tell(f"written: {out}")
    return 0 if all(one.stored for one in found) and not sources.unreadable else 1


async def _import(sources: Sources, *, activate: bool, dry: bool) -> list[Imported]:
    app = flows_app()
    async with app, nullcontext() if dry else noted(app):
        return await import_flows(app, sources, activate=activate, dry=dry)


def document_of(found: Sequence[Imported], sources: Sources, *, dry: bool = False) -> dict[str, Any]:
    """Return the whole report."""
    return {
        "flows": len(found), "can_run": sum(one.runs for one in found),
        "stored": 0 if dry else sum(one.stored for one in found),
        "missing_types": [reason.to_json() for reason in missing_types(found)],
        "other_reasons": [reason.to_json() for reason in other_reasons(found)],
        "results": [one.to_json() for one in found], **others_of(sources),
    }  # fmt: skip


def _tell(found: Sequence[Imported], sources: Sources, document: dict[str, Any]) -> None:
    rows = [
        (one.source.name, one.source.place, one.state, "" if one.version is None else one.version, _starts(one))
        for one in found if one.stored
    ]  # fmt: skip
    if rows:
        tell_table(("FLOW", "FILE", "STATE", "VERSION", "STARTS"), rows)
        tell()
    for one in found:
        _tell_one(one)
    tell_others(sources)
    _tell_reasons("MISSING NODE TYPE", missing_types(found))
    _tell_reasons("OTHER REASON", other_reasons(found))
    counts = Counter(one.state for one in found if one.state != CANNOT)
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    total = f"{document['flows']} {'flow' if document['flows'] == 1 else 'flows'}"
    tell(f"{document['can_run']} of {total} can run" + (f": {states}" if states else ""))


def _starts(one: Imported) -> str:
    return "by schedules and webhooks" if one.source.flow is not None and one.source.flow.active else "by hand"


def _tell_one(one: Imported) -> None:
    for note in one.notes:
        tell(f"note: {one.source.name!r}: {note}")
    if one.stored:
        return
    tell(f"{one.source.place}: {one.source.name or 'a flow'!r} {'is refused' if one.runs else 'cannot run'}")
    for problem in one.problems[:_MOST_PROBLEMS]:
        tell(f"  {shorten(str(problem))}")
    more = len(one.problems) - _MOST_PROBLEMS
    if more > 0:
        tell(f"  and {more} more: headrace flows validate {one.source.place}")


def _tell_reasons(title: str, reasons: Sequence[Reason]) -> None:
    if not reasons:
        return
    tell()
    column = "USE INSTEAD" if any(reason.instead for reason in reasons) else "FOR EXAMPLE"
    tell_table((title, "FLOWS", column), [_reason_row(reason) for reason in reasons[:_MOST_REASONS]])
    if len(reasons) > _MOST_REASONS:
        tell(f"and {len(reasons) - _MOST_REASONS} more; --json or --out FILE has all")
    tell()


def _reason_row(reason: Reason) -> tuple[object, ...]:
    return reason.what, reason.flows, reason.instead.removeprefix("use ") or shorten(reason.example, 200)
