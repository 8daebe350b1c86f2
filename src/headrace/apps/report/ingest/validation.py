"""How good the data are: fields that are missing, issues by rule, and what of it belongs on the first screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.apps.report.data.cases import Case, SheetReport, Status, ValidationReport
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
    rejected: int = 0,
    without: frozenset[str] = frozenset(),
) -> ValidationReport:
    """Return the report of what was read. Fields `without` are none that the format could give."""
    failing = [case for case in cases if case.fails]
    groups = dict.fromkeys(USED, cases) | dict.fromkeys(USED_OF_FAILING, failing)
    missing = {
        name: count
        for name, group in groups.items()
        if name not in without and (count := sum(_lacks(case, name) for case in group))
    }
    warnings = _missing_warnings(missing, len(cases), len(failing)) + _issue_warnings(book, len(cases))
    return ValidationReport(
        sheets=tuple(sheets),
        rows=sum(sheet.rows for sheet in sheets),
        cases=len(cases),
        rejected=rejected,
        missing=missing,
        issues=dict(sorted(book.counts.items())),
        warnings=tuple(warnings),
    )


def _missing_warnings(missing: Mapping[str, int], cases: int, failing: int) -> list[str]:
    found = []
    for name, count in missing.items():
        whole, noun = (cases, "cases") if name in USED else (failing, "failing cases")
        if count >= WARN_MISSING * whole:
            found.append(f"missing_{name}: {count:,} of {whole:,} {noun}")
    return found


def _issue_warnings(book: IssueBook, cases: int) -> list[str]:
    return [
        f"{rule}: {count:,} in {cases:,} cases"
        for rule, share in WARN_ISSUES.items()
        if (count := book.counts.get(rule, 0)) and count >= share * cases
    ]


def _lacks(case: Case, field: str) -> bool:
    """Whether a case has nothing for a field; a result that no synonym explains is none."""
    if field == "status":
        return case.status is Status.UNKNOWN
    return getattr(case, field) in ("", None)
