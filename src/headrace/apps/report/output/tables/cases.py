"""All cases, and those that failed or were blocked."""

from __future__ import annotations

from typing import Any

from headrace.apps.report.data.cases import Case
from headrace.apps.report.output.tables.base import Column, Table, columns
from headrace.apps.report.output.view import View

#: Columns of the file that mean nothing to the report: beyond this many they are in JSON alone.
MOST_EXTRA = 40
_CASES = (
    Column("case_id", "case"),
    Column("title", "long"),
    *columns("module", "priority", "severity"),
    Column("status", "status"),
    *columns("executor", "executed_at"),
    Column("duration_seconds", "seconds"),
    *columns("environment", "defect_id"),
    Column("sheet"),
    Column("row", "number"),
    *(
        Column(key, "long", on_page=False)
        for key in ("preconditions", "steps", "expected", "actual", "remark", "error")
    ),
    Column("given_module", on_page=False),
    Column("tagged_by", on_page=False),
    Column("module_confidence", "number", on_page=False),
    Column("rule", on_page=False),
)
_FAILED = (
    Column("case_id", "case"),
    Column("title", "long"),
    *columns("module", "priority", "severity"),
    Column("status", "status"),
    Column("cluster", "cluster"),
    *columns("expected", "actual", "error", "quote", kind="long"),
    Column("defect_id"),
    Column("executor", on_page=False),
    Column("executed_at", on_page=False),
    Column("environment", on_page=False),
    Column("sheet"),
    Column("row", "number"),
)


def all_cases(view: View) -> Table:
    """Every case as it was read, with its module and the other columns of the file."""
    extra = list(dict.fromkeys(header for case in view.document.cases for header in case.extra))[:MOST_EXTRA]
    theirs = tuple(Column("extra", "long", on_page=False, title=header) for header in extra)
    rows = [[*_row(view, case), *(case.extra.get(header, "") for header in extra)] for case in view.document.cases]
    return Table("cases", _CASES + theirs, rows)


def _row(view: View, case: Case) -> list[Any]:
    return [*_read(view, case), *_long(case), *_tagged(view, case)]


def _read(view: View, case: Case) -> list[Any]:
    severity = view.word.label("severity", case.severity) if case.severity else ""
    return [
        case.case_id, case.title, view.module(case.case_id), case.priority, severity, case.status,
        case.executor, case.executed_at, case.duration_seconds, case.environment, case.defect_id,
        case.source.sheet, case.source.row,
    ]  # fmt: skip


def _long(case: Case) -> list[Any]:
    return [case.preconditions, case.steps, case.expected, case.actual, case.remark, case.error]


def _tagged(view: View, case: Case) -> list[Any]:
    assignment = view.assignments.get(case.case_id)
    if assignment is None:
        return [case.module, view.word("tagged.nobody"), None, ""]
    return [case.module, view.word(f"tagged.{assignment.by}"), assignment.confidence, assignment.rule]


def failed_cases(view: View) -> Table:
    """Failed and blocked cases with their cause, the evidence, and their cluster."""
    return Table("failed", _FAILED, [_failed(view, case) for case in view.failing])


def _failed(view: View, case: Case) -> list[Any]:
    defect, cluster = view.defects.get(case.case_id), view.cluster_of.get(case.case_id)
    severity = view.word.label("severity", case.severity) if case.severity else ""
    return [
        case.case_id, case.title, view.module(case.case_id), case.priority, severity, case.status,
        cluster.cluster_id if cluster is not None else "",
        case.expected, case.actual, case.error, defect.quote if defect is not None else "",
        case.defect_id, case.executor, case.executed_at, case.environment, case.source.sheet, case.source.row,
    ]  # fmt: skip
