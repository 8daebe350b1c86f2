"""`headrace report build`: a report of a workbook."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headrace.apps.report.stages import STAGES

HELP = """Make a test report of a workbook of test cases, or of a JUnit file.

Writes into the folder OUT: report.html (one file, works offline), report.xlsx (with charts) and report.json. All figures
are counted by code. The model tells modules that rules cannot, facts of failures, names of clusters and the text; where
it is away the report comes without that, says so, and `headrace report resume` fills it in.

Ctrl-C, a crash or a reboot loses nothing: the same command goes on and pays for no answer twice.

\b
Stages, for --from:
  ingest_and_normalize, module_tagging, compute_stats_and_charts, extract_defects_fail_only,
  cluster_and_summarize_defects, render_report_and_export

\b
Examples:
  headrace report build cases.xlsx --out report/
  headrace report build cases.xlsx --out report/ --previous last/report.json --lang zh
  headrace report build cases.xlsx --out report/ --sheet Login --sheet Payment --rules modules.yaml
  headrace report build junit.xml --out report/ --concurrency 32 --json
  headrace report build cases.xlsx --out report/ --from cluster_and_summarize_defects
"""


def shared(command: Any) -> Any:
    """Add the options of commands that work on a report."""
    options = (
        click.option(
            "--concurrency", type=click.IntRange(1, 1000), default=8, show_default=True,
            help="Questions that this process asks the model at once.",
        ),
        click.option("--workers-elsewhere", is_flag=True, help="Leave the work to `headrace worker` or a farm."),
        click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of text."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command("build", help=HELP)
@click.argument("cases", metavar="CASES")
@click.option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Folder for the report.")
@click.option(
    "--previous", metavar="REPORT.json", type=click.Path(path_type=Path), help="An earlier report, for the trend."
)
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the report."
)
@click.option("--from", "stage", metavar="STAGE", type=click.Choice(STAGES), help="Run again from this stage on.")
@click.option(
    "--sheet", "sheets", metavar="NAME", multiple=True, help="Only these sheets. [default: all that are shown]"
)
@click.option(
    "--rules", metavar="FILE", type=click.Path(path_type=Path), help="Rules that tell modules (YAML or JSON)."
)
@click.option("--gate", metavar="NAME=VALUE", multiple=True, help="Exit criteria, such as pass_rate_of_executed=98.")
@click.option("--title", metavar="TEXT", default="", help="Title of the report. [default: the name of the file]")
@shared
def build(*, concurrency: int, workers_elsewhere: bool, as_json: bool, out: Path, **given: Any) -> int:
    """Make the report and return the exit code."""
    from headrace.apps.report.commands.ending import tell

    summary = asyncio.run(_build(given, out, concurrency=concurrency, elsewhere=workers_elsewhere, quiet=as_json))
    return tell(summary, as_json=as_json)


async def _build(
    given: Mapping[str, Any], out: Path, *, concurrency: int, elsewhere: bool, quiet: bool
) -> dict[str, Any]:
    from headrace.apps.report.commands.ending import ended
    from headrace.apps.report.commands.following import follow, working
    from headrace.apps.report.commands.requests import request_of
    from headrace.apps.report.delivering import check_folder
    from headrace.apps.report.job import begin_report, resume_report

    check_folder(out)
    request = request_of(given)
    async with working(concurrency=concurrency, elsewhere=elsewhere):
        job = await begin_report(request, name=str(out.resolve()))
        if (await job.run.status()).final or given["stage"] is not None:
            job = await resume_report(job, given["stage"])
        return await ended(job, await follow(job, quiet=quiet), out)
