"""Sums that must agree: a report whose figures contradict each other says so itself."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.apps.report.data.document import Lang, ReportDocument
from headrace.apps.report.stats.model import Stats

Sums = tuple[str, int, str, int]
_NAMES: dict[Lang, dict[str, str]] = {
    "en": {
        "cases": "cases of the list", "total": "total of the figures", "statuses": "sum over statuses",
        "modules": "sum over modules", "priorities": "sum over priorities", "executors": "sum over executors",
        "durations": "cases with and without duration", "days": "cases with and without day",
        "assignments": "assignments to modules", "failing": "failed and blocked cases",
        "listed": "failed and blocked cases of the list",
        "defects": "defects",
        "severities": "sum over severities", "defect_severities": "sum over severities of defects",
        "clusters": "sum over clusters", "clustered": "different cases in clusters",
        "moves": "newly and still failing cases",
    },
    "zh": {
        "cases": "用例清单条数", "total": "统计总数", "statuses": "各状态之和", "modules": "各模块之和",
        "priorities": "各优先级之和", "executors": "各执行人之和", "durations": "有、无耗时的用例之和",
        "days": "有、无日期的用例之和", "assignments": "模块归属条数", "failing": "失败与阻塞用例数",
        "listed": "清单中失败与阻塞用例数",
        "defects": "缺陷数", "severities": "各严重程度之和", "defect_severities": "各缺陷严重程度之和",
        "clusters": "各聚类之和", "clustered": "聚类中不同的用例数", "moves": "新增与持续失败用例之和",
    },
}  # fmt: skip


def check_reconciled(document: ReportDocument) -> list[str]:
    """Return a sentence for each two sums that should agree and do not, in the language of the document."""
    names = _NAMES[document.lang]
    stats = Stats.model_validate(document.stats)
    sums = [*_of_cases(document, stats), *_of_failing(document, stats)]
    return [
        f"{names[one]}: {count} ≠ {names[other]}: {other_count}"
        for one, count, other, other_count in sums
        if count != other_count
    ]


def _of_cases(document: ReportDocument, stats: Stats) -> Iterator[Sums]:
    yield "cases", len(document.cases), "total", stats.total
    yield "cases", len(document.cases), "assignments", len(document.assignments)
    yield "total", stats.total, "statuses", sum(stats.by_status.values())
    for name in ("modules", "priorities", "executors"):
        yield "total", stats.total, name, sum(sum(one.by_status.values()) for one in getattr(stats, name))
    yield "total", stats.total, "durations", sum(one.count for one in stats.durations.bins) + stats.durations.missing
    yield "total", stats.total, "days", sum(one.total for one in stats.days) + stats.without_day


def _of_failing(document: ReportDocument, stats: Stats) -> Iterator[Sums]:
    """Defects and clusters are compared where there are some: a degraded report may have none."""
    failing = stats.failing
    yield "failing", failing, "listed", sum(case.fails for case in document.cases)
    yield "failing", failing, "severities", sum(one.total for one in stats.severity_by_module)
    if document.defects:
        yield "failing", failing, "defects", len(document.defects)
        of_defects = sum(one.total for one in stats.defect_severity_by_module)
        yield "defects", len(document.defects), "defect_severities", of_defects
    if document.clusters:
        yield "failing", failing, "clusters", sum(one.size for one in document.clusters)
        clustered = {case_id for one in document.clusters for case_id in one.case_ids}
        yield "failing", failing, "clustered", len(clustered)
    if stats.trend is not None:
        moved = len(stats.trend.newly_failing) + len(stats.trend.still_failing)
        yield "failing", failing, "moves", moved
