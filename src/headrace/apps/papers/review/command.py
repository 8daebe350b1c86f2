"""`headrace papers review`: read a review sheet back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

REVIEW_HELP = """Read the review sheet SHEET back into the results in OUT.

SHEET is review.xlsx or review.csv of the run, filled in by a person. Writes verified.jsonl and verified.csv, the counts
of verified values into run.json, and who decided what into review-log.jsonl. Every mistake in the sheet is named with
its line and column, and then nothing is changed (exit code 2). Reading a sheet twice changes nothing.

\b
Examples:
  headrace papers review results/review.xlsx --out results/
  headrace papers review review-of-ab.csv --out results/ --reviewer AB --json
"""


@click.command("review", help=REVIEW_HELP)
@click.argument("sheet", metavar="SHEET", type=click.Path(path_type=Path))
@click.option("--out", required=True, metavar="OUT", type=click.Path(path_type=Path), help="Folder of the results.")
@click.option("--reviewer", metavar="NAME", default="", help="Who decided the lines that name nobody.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of text.")
def review(*, sheet: Path, out: Path, reviewer: str, as_json: bool) -> int:
    """Read a sheet back and return the exit code."""
    from headrace.apps.papers.review.reading_back import read_back

    done = read_back(sheet, out, reviewer=reviewer.strip()).to_json()
    if as_json:
        click.echo(json.dumps(done, ensure_ascii=False))
    else:
        _tell(done)
    return 0


def _tell(done: dict[str, Any]) -> None:
    changes, counts = done["changes"], done["verification"]
    made = ", ".join(f"{count} {what}" for what, count in changes.items()) or "nothing new"
    overruled = f" ({done['overruled']} of them decided otherwise by somebody else before)" if done["overruled"] else ""
    click.echo(f"read: {made}{overruled}")
    click.echo(
        f"{counts['verified']} values verified ({counts['accepted']} accepted, {counts['edited']} edited), "
        f"{counts['rejected']} rejected, {counts['open']} still open"
    )
    if counts["by"]:
        click.echo(f"by: {', '.join(counts['by'])}")
    for file in done["files"]:
        click.echo(f"written: {file}")
