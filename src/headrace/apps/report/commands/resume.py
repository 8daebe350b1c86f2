"""`headrace report resume`: fill what a report lacks, or go on with one that failed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from headrace.apps.report.commands.build import shared
from headrace.apps.report.stages import STAGES


@click.command("resume")
@click.argument("job_id", metavar="JOB_ID")
@click.option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Folder for the report.")
@click.option("--from", "stage", metavar="STAGE", type=click.Choice(STAGES), help="Run again from this stage on.")
@shared
def resume(
    job_id: str, out: Path, stage: str | None, concurrency: int, *, workers_elsewhere: bool, as_json: bool
) -> int:
    """Go on with a report: ask the model what is missing, and nothing else; write the files anew.

    A report that failed goes on where it failed, one that is complete is written again, one that runs is followed.

    \b
    Examples:
      headrace report resume 5f0c3a… --out report/
      headrace report resume 5f0c3a… --out report/ --from extract_defects_fail_only
    """
    from headrace.apps.report.commands.ending import tell

    work = _resume(job_id, out, stage, concurrency=concurrency, elsewhere=workers_elsewhere, quiet=as_json)
    return tell(asyncio.run(work), as_json=as_json)


async def _resume(
    job_id: str, out: Path, stage: str | None, *, concurrency: int, elsewhere: bool, quiet: bool
) -> dict[str, Any]:
    from headrace.apps.report.commands.ending import ended
    from headrace.apps.report.commands.following import follow, working
    from headrace.apps.report.delivering import check_folder
    from headrace.apps.report.job import find_report, resume_report

    check_folder(out)
    async with working(concurrency=concurrency, elsewhere=elsewhere):
        job = await resume_report(await find_report(job_id), stage)
        return await ended(job, await follow(job, quiet=quiet), out)
