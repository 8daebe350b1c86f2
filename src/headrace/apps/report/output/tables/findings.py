"""Defects and clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.defects import DefectFact
from headrace.apps.report.output.tables.base import Column, Table, columns
from headrace.apps.report.output.view import View
from headrace.apps.report.stats.values import rate

_DEFECTS = (
    Column("case_id", "case"),
    Column("title", "long"),
    Column("severity"),
    Column("status", "status"),
    *columns("component", "module", "priority"),
    Column("steps", "long", on_page=False),
    Column("expected", "long", on_page=False),
    Column("actual", "long"),
    Column("quote", "long"),
    Column("environment"),
    Column("confidence", "number"),
    Column("told_by"),
    Column("snippet", "long", on_page=False),
    Column("defect_id", on_page=False),
    Column("cluster", "cluster", on_page=False),
    Column("sheet", on_page=False),
    Column("row", "number", on_page=False),
)
_CLUSTERS = (
    Column("cluster_id", "cluster"),
    Column("name", "long"),
    Column("size", "number"),
    *columns("share", "cumulative", kind="percent"),
    Column("seen"),
    *columns("commonality", "systemic_risk", kind="long"),
    *columns("modules", "severities"),
    Column("exception"),
    *columns("message", "frame", kind="long"),
    Column("representative", "case"),
    *columns("evidence", "case_ids", kind="cases"),
    Column("told_by"),
)


def defects(view: View) -> Table:
    """A fact for each failed or blocked case."""
    return Table("defects", _DEFECTS, [_defect(view, one) for one in view.document.defects])


def _defect(view: View, one: DefectFact) -> list[Any]:
    case, cluster = view.cases.get(one.case_id), view.cluster_of.get(one.case_id)
    return [
        one.case_id, one.title, view.word.label("severity", one.severity), one.status, one.component,
        view.module(one.case_id), case.priority if case is not None else "", one.steps, one.expected, one.actual,
        one.quote, one.environment, one.confidence, view.word("told.model" if one.by_model else "told.code"),
        one.snippet, case.defect_id if case is not None else "",
        cluster.cluster_id if cluster is not None else "", one.source.sheet, one.source.row,
    ]  # fmt: skip


def clusters(view: View) -> Table:
    """The clusters, the largest first, with what part of the failing cases they make up."""
    rows, sofar = [], 0
    for one in sorted(view.document.clusters, key=lambda one: -one.size):
        sofar += one.size
        rows.append(_cluster(view, one, sofar))
    return Table("clusters", _CLUSTERS, rows)


def _cluster(view: View, one: Cluster, sofar: int) -> list[Any]:
    failing = view.stats.failing
    return [
        one.cluster_id, one.name, one.size, rate(one.size, failing).percent, rate(sofar, failing).percent,
        seen(view, one), one.commonality, one.systemic_risk, counted(view, "module", one.modules),
        counted(view, "severity", one.severities), one.exception, one.message, one.frame, one.representative,
        one.evidence, one.case_ids, view.word("told.model" if one.named_by_model else "told.template"),
    ]  # fmt: skip


def seen(view: View, one: Cluster) -> str:
    """Whether the report before had a cluster, in words."""
    return view.word({True: "seen.known", False: "seen.new", None: "seen.none"}[one.seen_before])


def counted(view: View, kind: str, counts: Mapping[str, int]) -> str:
    """Return counts by name as words, the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{view.word.label(kind, name)} {count}" for name, count in ordered)
