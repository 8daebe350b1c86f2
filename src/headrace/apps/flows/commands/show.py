"""`headrace flows show`: a flow as a picture, perhaps with what became of its nodes in a run."""

from __future__ import annotations

from pathlib import Path

import click

from headrace import App
from headrace.apps.flows.commands.stored import with_app
from headrace.apps.flows.commands.telling import json_option, tell, tell_json, tell_table, write_text
from headrace.apps.flows.drawing.mermaid import to_mermaid
from headrace.apps.flows.drawing.picture import Picture, picture_of
from headrace.apps.flows.drawing.svg import to_svg
from headrace.apps.flows.running import is_file
from headrace.apps.flows.sources import read_flow
from headrace.apps.flows.states import flow_of_run, read_results
from headrace.apps.flows.storing import load_flow


@click.command()
@click.argument("flow", metavar="[FLOW.json|NAME]", required=False)
@click.option("--run", "run_id", metavar="RUN_ID", show_default=False, help="The flow of a run, with its states.")
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", help="How.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file.")
@json_option
def show(flow: str | None, run_id: str | None, form: str, out: Path | None, as_json: bool) -> None:
    """Draw a flow: as a table, as Mermaid text, or as SVG, with its nodes where they stand on the canvas.

    With --run the flow is drawn as it was when that run was started, with what became of each node. --json writes the
    nodes and connections, with the drawing as a text within.

    \b
    Examples:
      headrace flows show prices.json --format mermaid
      headrace flows show "Daily report" --format svg --out report.svg
      headrace flows show --run 01980000-0000-7000-8000-000000000000
    """
    if (flow is None) == (run_id is None):
        raise click.UsageError("give a file or the name of a flow, or --run RUN_ID")
    picture = _picture(flow, run_id)
    drawn = {"mermaid": to_mermaid, "svg": to_svg, "text": to_text}[form](picture)
    if out is not None:
        write_text(out, drawn)
    if as_json:
        tell_json(document_of(picture) | {"format": form, "drawing": drawn})
    elif out is not None:
        tell(f"written: {out}")
    elif form == "text":
        _tell_tables(picture)
    else:
        click.echo(drawn, nl=False)


def _picture(flow: str | None, run_id: str | None) -> Picture:
    if run_id is not None:
        return with_app(lambda app: _of_run(app, run_id))
    assert flow is not None
    return picture_of(read_flow(Path(flow)) if is_file(flow) else with_app(lambda app: load_flow(app, flow)))


async def _of_run(app: App, run_id: str) -> Picture:
    run = app.find_run(run_id)
    flow = await flow_of_run(app, await run.view())
    results = await read_results(app, run, flow)
    return picture_of(flow, {one.name: (one.state, one.remark) for one in results})


def document_of(picture: Picture) -> dict[str, object]:
    """Return what is drawn, for machines."""
    return {
        "flow": picture.title,
        "nodes": [
            {
                "name": box.name, "type": box.type, "shape": box.shape, "disabled": box.disabled,
                "state": box.state or None, "remark": box.remark or None,
            }
            for box in picture.boxes
        ],
        "connections": [
            {"from": line.source, "to": line.target, "label": line.label or None, "kind": line.kind}
            for line in picture.lines
        ],
    }  # fmt: skip


def to_text(picture: Picture) -> str:
    """Return the connections as lines, and the nodes that have none.

    >>> from headrace.apps.flows.drawing.picture import Box, Line
    >>> print(to_text(Picture("A", (Box("Go", "manual"), Box("If", "if")), (Line("Go", "If", "main"),))), end="")
    Go -- main --> If
    """
    lines = [f"{line.source} {f'-- {line.label} ' if line.label else ''}--> {line.target}" for line in picture.lines]
    linked = {name for line in picture.lines for name in (line.source, line.target)}
    return "\n".join([*lines, *(box.name for box in picture.boxes if box.name not in linked), ""])


def _tell_tables(picture: Picture) -> None:
    states = any(box.state for box in picture.boxes)
    rows = [
        (box.name, box.type, "disabled" if box.disabled else str(box.shape or "unknown"), box.state, box.remark)
        for box in picture.boxes
    ]
    if states:
        tell_table(("NODE", "TYPE", "SHAPE", "STATE", "ITEMS"), rows)
    else:
        tell_table(("NODE", "TYPE", "SHAPE"), [row[:3] for row in rows])
    tell()
    tell(to_text(picture).rstrip())
