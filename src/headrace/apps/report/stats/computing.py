"""From cases to figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.defects import DefectFact
from headrace.apps.report.data.modules import UNCATEGORIZED, Assignment, TaggedBy
from headrace.apps.report.stats.completeness import completeness_of
from headrace.apps.report.stats.durations import durations_of
from headrace.apps.report.stats.gate import Thresholds, judge
from headrace.apps.report.stats.grouping import (
    busiest_first,
    modules_by_case,
    severities_by_module,
    split_by,
    worst_first,
)
from headrace.apps.report.stats.model import Stats
from headrace.apps.report.stats.previous import Previous, previous_of
from headrace.apps.report.stats.trend import compare, compare_clusters
from headrace.apps.report.stats.values import Cross, Split, count_statuses, rates_of

Earlier = Previous | Mapping[str, object] | None
_STANDARD = Thresholds()


def compute_stats(
    cases: Sequence[Case],
    assignments: Iterable[Assignment],
    defects: Iterable[DefectFact] = (),
    previous: Earlier = None,
    thresholds: Thresholds = _STANDARD,
) -> Stats:
    """Return all figures of cases. Without defects, `add_findings` adds what rests on them later."""
    assigned = list(assignments)
    where = modules_by_case(cases, assigned)
    modules = worst_first(split_by(cases, lambda case: where[case.case_id]))
    by_status, then = count_statuses(cases), previous_of(previous)
    dated = [case for case in cases if case.executed_at]
    return Stats(
        total=len(cases),
        by_status=by_status,
        failing=sum(case.fails for case in cases),
        rates=rates_of(by_status),
        gate=judge(cases, thresholds),
        modules=modules,
        tagged_by=_tagged_by(cases, assigned),
        severity_by_module=severities_by_module(
            ((where[case.case_id], case.severity) for case in cases if case.fails), [one.name for one in modules]
        ),
        defect_severity_by_module=_of_defects(defects, where, modules),
        priorities=tuple(split_by(cases, lambda case: case.priority)),
        executors=busiest_first(split_by(cases, lambda case: case.executor)),
        durations=durations_of(cases),
        days=tuple(split_by(dated, lambda case: (case.executed_at or "")[:10])),
        without_day=len(cases) - len(dated),
        completeness=completeness_of(cases),
        trend=compare(cases, by_status, modules, then) if then is not None else None,
    )


def add_findings(
    stats: Stats,
    assignments: Iterable[Assignment],
    defects: Iterable[DefectFact],
    clusters: Iterable[Cluster] = (),
    previous: Earlier = None,
) -> Stats:
    """Return the figures with what is known only later: severities of defects, and which clusters are new."""
    where = {one.case_id: one.module or UNCATEGORIZED for one in assignments}
    update: dict[str, object] = {"defect_severity_by_module": _of_defects(defects, where, stats.modules)}
    then = previous_of(previous)
    if then is not None and stats.trend is not None:
        update["trend"] = stats.trend.model_copy(update={"clusters": compare_clusters(clusters, then)})
    return stats.model_copy(update=update)


def _of_defects(defects: Iterable[DefectFact], where: Mapping[str, str], modules: Iterable[Split]) -> tuple[Cross, ...]:
    pairs = ((where.get(one.case_id, UNCATEGORIZED), one.severity) for one in defects)
    return severities_by_module(pairs, [one.name for one in modules])


def _tagged_by(cases: Sequence[Case], assignments: Iterable[Assignment]) -> dict[str, int]:
    said = {one.case_id: one.by for one in assignments}
    counts = Counter(said.get(case.case_id, TaggedBy.NOBODY) for case in cases)
    return {by.value: counts[by] for by in TaggedBy}
