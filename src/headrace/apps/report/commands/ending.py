"""How a command tells what became of a report, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from headrace.apps.report.delivering import deliver
from headrace.apps.report.errors import INPUT_ERRORS
from headrace.apps.report.job import Job
from headrace.apps.report.opening import app
from headrace.apps.report.progress import ReportProgress, progress_document
from headrace.apps.report.stages import INGEST

#: Warnings about the data that are told; the report has all of them, the worst first.
MOST_WARNINGS = 5


async def ended(job: Job, progress: ReportProgress, out: Path) -> dict[str, Any]:
    """Write the files of a report that has ended, and return the summary of it. Raises ConfigError for a bad file."""
    summary = progress_document(progress) | {"run_id": str(job.run.id), "files": []}
    if progress.status not in ("ok", "degraded"):
        await _refuse(job)
        return summary
    result = await job.run.result()
    files = await deliver(job, out)
    told = result["next_inputs"]
    # By the ledger: answers that could not be used are in it, and nothing that earlier runs of the report paid.
    spent = sum(view.tokens for view in await app.budgets.show([f"run:{job.run.id}"]))
    return summary | {
        "run_tokens": spent,
        "files": [str(file) for file in files], "metrics": result["metrics"], "warnings": result["warnings"],
        "verdict": told["verdict"], "usage": told["usage"], "degraded": told["degraded"],
        "data_warnings": told["data_warnings"],
    }  # fmt: skip


async def _refuse(job: Job) -> None:
    """Raise what was wrong with the file, where that is why there is no report."""
    error = next((node.error for node in (await job.run.tree()).nodes if node.path == INGEST), None)
    if error is not None and error.kind in INPUT_ERRORS:
        raise INPUT_ERRORS[error.kind](error.message)


def tell(summary: dict[str, Any], *, as_json: bool) -> int:
    """Write a summary; return the exit code: 0 for a report, whole or without the model, 1 for none."""
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    else:
        for line in _lines(summary):
            click.echo(line)
    return 0 if summary["files"] else 1


def _lines(summary: dict[str, Any]) -> list[str]:
    if not summary["files"]:
        return [f"report {summary['job_id']}: {summary['status']}", summary["message"]]
    metrics, usage = summary["metrics"], summary["usage"]
    lines = [
        f"report {summary['job_id']}: {summary['status']}, verdict: {summary['verdict']}",
        f"{metrics['cases']} cases: {metrics['passed']} passed, {metrics['failed']} failed, {metrics['blocked']} "
        f"blocked, {metrics['skipped']} skipped, {metrics['unknown']} unknown; {metrics['clusters']} clusters",
        f"{usage['calls']} model calls for its answers, {usage['reused']} answers that were there already; "
        f"{summary['run_tokens']:,} tokens used now",
    ]
    shown, more = summary["data_warnings"][:MOST_WARNINGS], len(summary["data_warnings"]) - MOST_WARNINGS
    lines += [f"data: {warning}" for warning in shown]
    lines += [f"data: {more} more, see the report"] if more > 0 else []
    lines += [f"warning: {warning}" for warning in summary["warnings"]]
    if any(one["reason"] in ("no_model", "config", "auth") for one in summary["degraded"]):
        lines.append("name a model: HEADRACE_LLM_MODEL, HEADRACE_LLM_BASE_URL, HEADRACE_LLM_API_KEY, or [llm]")
    if summary["degraded"]:
        lines.append(f"fill what is missing: headrace report resume {summary['job_id']} --out DIR")
    return lines + [f"written: {file}" for file in summary["files"]]
