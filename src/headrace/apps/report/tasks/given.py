"""What the last stage is given: the results of all others, read from the shelf."""

from __future__ import annotations

from typing import Any

from headrace.apps.report import shelf
from headrace.apps.report.content.found import Found
from headrace.apps.report.data.cases import ValidationReport
from headrace.apps.report.data.kinds import ASSIGNMENTS, CASES, CLUSTERS, FACTS, ISSUES
from headrace.apps.report.stages import StageResult
from headrace.apps.report.stats import Previous, Stats


async def read_found(given: dict[str, Any]) -> Found:
    """Return what the stages found; `given`: their results, by stage."""
    results = {name: StageResult.model_validate(given[name]) for name in given}
    refs: dict[str, Any] = {}
    for result in results.values():
        refs |= result.artifacts
    previous_ref = refs["previous_ref"]
    return Found(
        results=results,
        cases=await shelf.get(refs["normalized_cases_ref"], CASES),
        issues=await shelf.get(refs["parse_issues_ref"], ISSUES),
        validation=await shelf.get(refs["validation_report_ref"], ValidationReport),
        assignments=await shelf.get(refs["module_assignments_ref"], ASSIGNMENTS),
        counted=await shelf.get(refs["stats_ref"], Stats),
        defects=await shelf.get(refs["defect_facts_ref"], FACTS),
        grouped=await shelf.get(refs["clusters_ref"], CLUSTERS),
        previous=None if previous_ref is None else await shelf.get(previous_ref, Previous),
    )
