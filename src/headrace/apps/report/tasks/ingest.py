"""Stage 1: read the file, normalise its cases, say what was wrong with it."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.apps.report import shelf, stages
from headrace.apps.report.data.cases import Ingested, ValidationReport
from headrace.apps.report.data.kinds import CASES, ISSUES, PREVIOUS
from headrace.apps.report.ingest.reading import read_file
from headrace.apps.report.opening import IO, IO_TIME, Q_IO, app
from headrace.apps.report.sources import local_file
from headrace.apps.report.stages import StageResult
from headrace.apps.report.tasks.joints import key_of


@app.task(name=stages.INGEST, queue=Q_IO, retry=IO, timeout=IO_TIME)
async def ingest_and_normalize(
    job_id: str, source: dict[str, Any], sheets: list[str], previous: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the references of cases, issues and validation report. What cannot be read fails the report."""
    async with local_file(source) as path:
        found = await asyncio.to_thread(read_file, path, sheets=sheets)
    key = key_of(job_id, stages.INGEST, source, sheets)
    artifacts = {
        "normalized_cases_ref": await shelf.put(list(found.cases), CASES, key=key),
        "parse_issues_ref": await shelf.put(list(found.issues), ISSUES, key=key),
        "validation_report_ref": await shelf.put(found.validation, ValidationReport, key=key),
        "previous_ref": None if previous is None else await shelf.put(previous, PREVIOUS, key=key),
    }
    return result_of(job_id, found, artifacts).model_dump(mode="json")


def result_of(job_id: str, found: Ingested, artifacts: dict[str, Any]) -> StageResult:
    """Return what the stage says of a file that was read."""
    metrics: dict[str, int | float] = {
        "rows": found.validation.rows, "cases": len(found.cases), "issues": sum(found.validation.issues.values()),
        "rejected": found.validation.rejected,
    }  # fmt: skip
    return StageResult(
        job_id=job_id, stage=stages.INGEST, artifacts=artifacts, metrics=metrics,
        warnings=found.validation.warnings, next_inputs={"cases_ref": artifacts["normalized_cases_ref"]},
    )  # fmt: skip
