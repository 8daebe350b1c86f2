"""How good the data are: fields that are missing, issues by rule, and what of it belongs on the first screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.apps.report.data.cases import Case, DataWarning, SheetReport, Status, ValidationReport
from headrace.apps.report.ingest.cells import Grid, is_blank
from headrace.apps.report.ingest.issues import IssueBook

#: Fields that reports use, of every case …
USED = ("title", "module", "priority", "status", "executor", "executed_at", "duration_seconds", "expected")
#: … and of those that failed or are blocked.
USED_OF_FAILING = ("severity", "actual")
#: Where so many of the cases lack a field, a warning says so.
WARN_MISSING = 0.1
#: By rule: where the issues are so many to a case, a warning says so.
WARN_ISSUES = {
    "missing_id": 0.1,
    "differing_results": 0.0,
    "unknown_status": 0.01,
    "duplicate_id": 0.01,
    "broken_cell": 0.01,
    "formula_without_value": 0.01,
    "bad_date": 0.1,
    "ambiguous_date": 0.1,
}


def validated(
    cases: Sequence[Case],
    sheets: Sequence[SheetReport],
    book: IssueBook,
    *,
    also: Sequence[DataWarning] = (),
    without: frozenset[str] = frozenset(),
) -> ValidationReport:
    """Return the report of what was read. Warnings `also` come first; fields `without` the format cannot give."""
    failing = [case for case in cases if case.fails]
    groups = dict.fromkeys(USED, cases) | dict.fromkeys(USED_OF_FAILING, failing)
    missing = {
        name: count
        for name, group in groups.items()
        if name not in without and (count := sum(_lacks(case, name) for case in group))
    }
    of_issues = _issue_warnings(book, len(cases))
    differing = [one for one in of_issues if one.rule == "differing_results"]
    others = [one for one in of_issues if one.rule != "differing_results"]
    return ValidationReport(
        sheets=tuple(sheets),
        rows=sum(sheet.cases + sheet.rejected + sheet.joined for sheet in sheets),
        cases=len(cases),
        rejected=sum(sheet.rejected for sheet in sheets),
        joined=sum(sheet.joined for sheet in sheets),
        missing=missing,
        issues=dict(sorted(book.counts.items())),
        warned=(*also, *differing, *_missing_warnings(missing, len(cases), len(failing)), *others),
    )


def unused_warnings(grids: Iterable[Grid], sheets: Sequence[SheetReport]) -> list[DataWarning]:
    """Return a warning for each sheet that was looked at and not used; words in one column are notes, and no table."""
    tables = {grid.name for grid in grids if _is_table(grid)}
    return [
        DataWarning(rule="unused_sheet", count=sheet.rows, what=sheet.name)
        for sheet in sheets
        if not sheet.used and sheet.name in tables
    ]


def _is_table(grid: Grid) -> bool:
    return any(sum(not is_blank(cell) for cell in row) > 1 for row in grid.rows)


def _missing_warnings(missing: Mapping[str, int], cases: int, failing: int) -> list[DataWarning]:
    found = []
    for name, count in missing.items():
        whole, noun = (cases, "cases") if name in USED else (failing, "failing cases")
        if count >= WARN_MISSING * whole:
            found.append(DataWarning(rule=f"missing_{name}", count=count, of=whole, what=noun))
    return found


def _issue_warnings(book: IssueBook, cases: int) -> list[DataWarning]:
    return [
        DataWarning(rule=rule, count=count, of=cases)
        for rule, share in WARN_ISSUES.items()
        if (count := book.counts.get(rule, 0)) and count >= share * cases
    ]


def _lacks(case: Case, field: str) -> bool:
    """Whether a case has nothing for a field; a result that no synonym explains is none."""
    if field == "status":
        return case.status is Status.UNKNOWN
    return getattr(case, field) in ("", None)
