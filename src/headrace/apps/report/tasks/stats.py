"""Stage 3: all figures, by code alone, and the data of charts."""

from __future__ import annotations

from typing import Any

from headrace.apps.report import shelf, stages
from headrace.apps.report.charts import build_charts
from headrace.apps.report.data.cases import ValidationReport
from headrace.apps.report.data.document import Lang
from headrace.apps.report.data.kinds import ASSIGNMENTS, CASES, CHARTS
from headrace.apps.report.opening import CPU, CPU_TIME, Q_CPU, app
from headrace.apps.report.stages import StageResult
from headrace.apps.report.stats import Previous, Stats, Thresholds, compute_stats
from headrace.apps.report.tasks.joints import key_of


@app.task(name=stages.STATS, queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def compute_stats_and_charts(
    job_id: str, ingest: dict[str, Any], tagging: dict[str, Any], gate: dict[str, Any], lang: Lang
) -> dict[str, Any]:
    """Return the references of figures and charts. Data that say too little are told in the figures, and no failure."""
    cases = await shelf.get(ingest["normalized_cases_ref"], CASES)
    assignments = await shelf.get(tagging["module_assignments_ref"], ASSIGNMENTS)
    validation = await shelf.get(ingest["validation_report_ref"], ValidationReport)
    previous_ref = ingest["previous_ref"]
    previous = None if previous_ref is None else await shelf.get(previous_ref, Previous)
    figures = compute_stats(cases, assignments, previous=previous, thresholds=Thresholds.model_validate(gate))
    key = key_of(job_id, stages.STATS, ingest, tagging, gate, lang)
    result = StageResult(
        job_id=job_id, stage=stages.STATS,
        artifacts={
            "stats_ref": await shelf.put(figures, Stats, key=key),
            "charts_ref": await shelf.put(build_charts(figures, (), lang), CHARTS, key=key),
        },
        metrics={"cases": figures.total, "incomplete": int(validation.is_incomplete)},
        warnings=("incomplete: figures rest on data that lack something",) if validation.is_incomplete else (),
    )  # fmt: skip
    return result.model_dump(mode="json")
