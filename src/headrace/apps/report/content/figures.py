"""What the model is told of the results: figures that code counted, and ids that its sentences may cite."""

from __future__ import annotations

from typing import Any

from headrace.apps.report.content.found import Found
from headrace.apps.report.data.cases import Status
from headrace.apps.report.prompts import clipped

#: Clusters, modules and failing cases that it is told of: the largest, the worst, the most urgent.
MOST_CLUSTERS, MOST_MODULES, MOST_CASES = 15, 20, 15
#: Cases of a module with failures that may be cited.
MOST_OF_MODULE = 3


def figures_for(found: Found) -> dict[str, Any]:
    """Return the figures, small enough for one question."""
    stats = found.stats
    return {
        "cases": stats.total,
        "failing": stats.failing,
        "by_status": stats.by_status,
        "pass_rate_of_executed_percent": stats.rates.pass_rate_of_executed.percent,
        "execution_rate_percent": stats.rates.execution_rate.percent,
        "verdict": stats.gate.verdict,
        "unmet_criteria": [
            {"name": one.name, "wanted": one.wanted, "actual": one.actual, "unit": one.unit, "of": list(one.priorities)}
            for one in stats.gate.criteria
            if one.met is False
        ],
        "module_count": len(stats.modules),
        "modules": _modules(found),
        "cluster_count": len(found.clusters),
        "clusters": _clusters(found),
        "worst_cases": _cases(found),
        "warnings": list(found.validation.warnings),
    }


def _modules(found: Found) -> list[dict[str, Any]]:
    where = {one.case_id: one.module for one in found.assignments}
    failing: dict[str, list[str]] = {}
    for case in found.cases:
        if case.fails:
            failing.setdefault(where.get(case.case_id, ""), []).append(case.case_id)
    return [
        {
            "module": split.name, "cases": split.total, "failing": split.failing, "by_status": split.by_status,
            "failing_cases": failing.get(split.name, [])[:MOST_OF_MODULE],
        }
        for split in found.stats.modules[:MOST_MODULES]
    ]  # fmt: skip


def _clusters(found: Found) -> list[dict[str, Any]]:
    return [
        {
            "id": one.cluster_id, "name": one.name, "cases": one.size, "modules": one.modules,
            "severities": one.severities, "seen_before": one.seen_before, "evidence": list(one.evidence),
        }
        for one in found.clusters[:MOST_CLUSTERS]
    ]  # fmt: skip


def _cases(found: Found) -> list[dict[str, Any]]:
    failing = [case for case in found.cases if case.fails]
    failing.sort(key=lambda case: (case.priority or "P9", case.status is not Status.FAILED, case.case_id))
    return [
        {"id": case.case_id, "title": clipped(case.title, 100), "priority": case.priority, "status": case.status.value}
        for case in failing[:MOST_CASES]
    ]
