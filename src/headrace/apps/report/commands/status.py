"""`headrace report status`: how far a report is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click


@click.command("status")
@click.argument("job_id", metavar="JOB_ID")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of text.")
def status(job_id: str, *, as_json: bool) -> None:
    """Show how far a report is, stage by stage.

    \b
    Example:
      headrace report status 5f0c3a…
    """
    found = asyncio.run(_look(job_id))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    click.echo(f"report {found['job_id']}: {found['status']}, {found['percent']} %")
    click.echo(found["message"])
    for one in found["stages"]:
        told = f"  {one['message']}" if one["message"] else ""
        click.echo(f"  {one['stage']:32} {one['status']:9} {one['percent']:3d} %{told}")


async def _look(job_id: str) -> dict[str, Any]:
    from headrace.apps.report.job import find_report
    from headrace.apps.report.opening import app
    from headrace.apps.report.progress import look_at, progress_document, stage_results

    async with app:
        job = await find_report(job_id)
        results = {one.pop("stage"): one for one in await stage_results(job)}
        found = progress_document(await look_at(job)) | {"run_id": str(job.run.id)}
        for one in found["stages"]:
            one |= {name: value for name, value in results[one["stage"]].items() if name != "warnings"}
        return found
