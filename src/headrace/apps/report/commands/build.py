"""`headrace report build`: a report of a workbook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.apps.report.commands.order import PATH, Order, carry_out, work_options
from headrace.apps.report.stages import STAGES

if TYPE_CHECKING:
    from headrace.apps.report.job import Job

HELP = """Make a test report of a workbook of test cases, or of a JUnit file.

Writes into the folder DIR: report.html (one file, works offline), report.xlsx (with charts) and report.json. All
figures are counted by code. The model tells modules that rules cannot, facts of failures, names of clusters and the
text; where it is away the report comes without that, says so, and `headrace report resume` fills it in.

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


NOT_BEGUN = "all stages run; answers of the model that were paid before cost nothing"


@click.command("build", help=HELP)
@click.argument("cases", metavar="CASES")
@click.option("--out", required=True, metavar="DIR", type=PATH, help="Folder for the report.")
@click.option("--previous", metavar="REPORT.json", type=PATH, help="An earlier report, for the trend.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language.")
@click.option("--from", "stage", metavar="STAGE", type=click.Choice(STAGES), help="Run again from this stage on.")
@click.option("--sheet", "sheets", metavar="NAME", multiple=True, help="Only these sheets. [default: all shown ones]")
@click.option("--rules", metavar="FILE", type=PATH, help="Rules that tell modules (YAML or JSON).")
@click.option("--gate", metavar="NAME=VALUE", multiple=True, help="Exit criteria, such as pass_rate_of_executed=98.")
@click.option("--title", metavar="TEXT", default="", help="Title of the report. [default: the name of the file]")
@work_options
def build(*, out: Path, stage: str | None, concurrency: int, **given: Any) -> int:
    """Make the report and return the exit code."""
    order = Order(out, stage, concurrency, given.pop("workers_elsewhere"), given.pop("as_json"))
    return carry_out(order, lambda: _begin(given, order))


async def _begin(given: Mapping[str, Any], order: Order) -> Job:
    from headrace.apps.report.commands.requests import request_of
    from headrace.apps.report.job import begin_report, is_begun, resume_report

    request, stage = request_of(given), order.stage
    if stage is not None and not await is_begun(request, name=order.name):
        click.echo(f"no report of this file with these options yet: {NOT_BEGUN}", err=True)
        stage = None
    job = await begin_report(request, name=order.name)
    if stage is None and not (await job.run.status()).final:
        return job
    return await resume_report(job, stage)
