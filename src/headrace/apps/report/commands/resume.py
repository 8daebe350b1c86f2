"""`headrace report resume`: fill what a report lacks, or go on with one that failed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.apps.noting import noted
from headrace.apps.report.commands.order import PATH, Order, carry_out, work_options
from headrace.apps.report.stages import STAGES

if TYPE_CHECKING:
    from headrace.apps.report.job import Job


@click.command("resume")
@click.argument("job_id", metavar="JOB_ID")
@click.option("--out", required=True, metavar="DIR", type=PATH, help="Folder for the report.")
@click.option("--from", "stage", metavar="STAGE", type=click.Choice(STAGES), help="Run again from this stage on.")
@work_options
def resume(job_id: str, *, out: Path, stage: str | None, concurrency: int, **how: Any) -> int:
    """Go on with a report: ask the model what is missing, and nothing else; write the files anew.

    A report that failed goes on where it failed, one that is complete is written again, one that runs is followed.

    \b
    Examples:
      headrace report resume 5f0c3a… --out report/
      headrace report resume 5f0c3a… --out report/ --from extract_defects_fail_only
    """
    order = Order(out, stage, concurrency, how["workers_elsewhere"], how["as_json"])
    return carry_out(order, lambda: _go_on(job_id, stage))


async def _go_on(job_id: str, stage: str | None) -> Job:
    from headrace.apps.report.job import find_report, resume_report
    from headrace.apps.report.opening import app

    # Not the work that follows, which may take hours and be left.
    async with noted(app):
        return await resume_report(await find_report(job_id), stage)
