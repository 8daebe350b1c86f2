"""From a file to normalised cases: the first stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.apps.report.data.cases import Case, Ingested, SheetReport
from headrace.apps.report.ingest.cells import Grid
from headrace.apps.report.ingest.delimited import read_delimited
from headrace.apps.report.ingest.formats import Kind, told_kind
from headrace.apps.report.ingest.header import Header, find_header
from headrace.apps.report.ingest.ids import Ids
from headrace.apps.report.ingest.issues import IssueBook
from headrace.apps.report.ingest.junit import read_junit
from headrace.apps.report.ingest.refusing import no_cases
from headrace.apps.report.ingest.rows import SheetRows
from headrace.apps.report.ingest.validation import validated
from headrace.apps.report.ingest.workbooks import check_names, read_workbook

_NO_HEADER = (
    "no row of the first 50 names the fields of test cases: an id, a title or a result, and steps, a module or the like"
)


def read_file(path: Path, *, sheets: Sequence[str] = ()) -> Ingested:
    """Return the cases of a file, with what was wrong with it; of a workbook the named sheets, else all that show.

    It waits for files and processes: call it in a thread. Raises UnsafeFileError, UnreadableFileError, FileTypeError
    (the content is not what the name says), NoCasesError (also for a sheet that is not there), and ConfigError where
    `headrace[report]` is not installed.
    """
    kind, unpacked = told_kind(path)
    if kind is Kind.XML:
        check_names(path, sheets, [path.stem])
        found = read_junit(path)
    elif kind is Kind.CSV:
        check_names(path, sheets, [path.stem])
        found = _of_grids([read_delimited(path)], sheets)
    else:
        found = _of_grids(read_workbook(path, kind=kind, unpacked=unpacked, sheets=sheets), sheets)
    if not found.cases:
        why = "; ".join(f"{sheet.name}: {sheet.reason or 'no rows of cases'}" for sheet in found.validation.sheets[:10])
        fix = "Name a sheet whose header has a case id, a title or a result"
        raise no_cases(path, "there must be test cases", f"none ({why or 'no sheets'})", fix)
    return found


def _of_grids(grids: Sequence[Grid], wanted: Sequence[str]) -> Ingested:
    book = IssueBook()
    ids = Ids(book)
    cases: list[Case] = []
    reports: list[SheetReport] = []
    rejected = 0
    for grid in grids:
        why_not = _why_not(grid, wanted)
        header = None if why_not else find_header(grid)
        if header is None:
            reports.append(_unused(grid, why_not or _NO_HEADER))
            continue
        rows_of = SheetRows(grid, header, book, ids)
        found = rows_of.cases()
        cases += found
        rejected += rows_of.rejected
        reports.append(_report(grid, header, rows_of.rows, len(found)))
    return Ingested(
        cases=tuple(cases), issues=book.kept(), validation=validated(cases, reports, book, rejected=rejected)
    )


def _why_not(grid: Grid, wanted: Sequence[str]) -> str:
    """Return why a sheet is not looked at; nothing where it is."""
    if wanted and grid.name not in wanted:
        return "it is not among the sheets that were named"
    if grid.hidden and not wanted:
        return "it is hidden: name it to have it read"
    return "" if grid.rows else "it is empty"


def _unused(grid: Grid, reason: str) -> SheetReport:
    rows = sum(any(cell is not None for cell in row) for row in grid.rows)
    return SheetReport(name=grid.name, used=False, reason=reason, hidden=grid.hidden, columns={}, rows=rows)


def _report(grid: Grid, header: Header, rows: int, cases: int) -> SheetReport:
    return SheetReport(
        name=grid.name,
        used=cases > 0,
        reason="" if cases else "there are no cases below its header",
        hidden=grid.hidden,
        header_rows=tuple(range(header.first + 1, header.last + 2)),
        columns={field: column.header for field, column in header.fields.items()},
        ignored_columns=tuple(column.header for column in header.columns if column.field is None),
        rows=rows,
        cases=cases,
    )
