"""From a file to normalised cases: the first stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.apps.report.data.cases import Case, Ingested, SheetReport
from headrace.apps.report.ingest.cells import Grid
from headrace.apps.report.ingest.columns import Header
from headrace.apps.report.ingest.defect_lists import is_defect_list
from headrace.apps.report.ingest.delimited import read_delimited
from headrace.apps.report.ingest.formats import Kind, told_kind
from headrace.apps.report.ingest.header import find_header
from headrace.apps.report.ingest.ids import Ids
from headrace.apps.report.ingest.issues import IssueBook
from headrace.apps.report.ingest.junit import read_junit
from headrace.apps.report.ingest.refusing import no_cases
from headrace.apps.report.ingest.rows import SheetRows
from headrace.apps.report.ingest.tables import tables_of
from headrace.apps.report.ingest.validation import unused_warnings, validated
from headrace.apps.report.ingest.workbooks import check_names, read_workbook

_NO_HEADER = (
    "no row of the first 50 names the fields of test cases: an id, a title or a result, and steps, a module or the like"
)
_DEFECTS = "it lists defects: name it to have it read"


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
    for grid in grids:
        why_not = _why_not(grid, wanted)
        header = None if why_not else find_header(grid)
        if header and not wanted and is_defect_list(grid, header):
            why_not = _DEFECTS
        if header is None or why_not:
            reports.append(_unused(grid, why_not or _NO_HEADER))
            continue
        found, report = _read(list(tables_of(grid, header)), book, ids)
        cases += found
        reports.append(report)
    also = unused_warnings(grids, reports)
    return Ingested(cases=tuple(cases), issues=book.kept(), validation=validated(cases, reports, book, also=also))


def _read(tables: Sequence[tuple[Header, Grid]], book: IssueBook, ids: Ids) -> tuple[list[Case], SheetReport]:
    cases: list[Case] = []
    parts = []
    for number, (header, grid) in enumerate(tables):
        parts.append(SheetRows(grid, header, book, ids))
        # Of the first table it was decided whether the sheet is used.
        if number and is_defect_list(grid, header):
            parts[-1].reject_all("defect_row")
            continue
        cases += parts[-1].cases()
    return cases, _report(tables[-1][1], parts, len(cases))


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


def _report(grid: Grid, parts: Sequence[SheetRows], cases: int) -> SheetReport:
    header = parts[0].header
    ignored = [column.header for part in parts for column in part.header.columns if column.field is None]
    return SheetReport(
        name=grid.name,
        used=cases > 0,
        reason="" if cases else "there are no cases below its header",
        hidden=grid.hidden,
        header_rows=tuple(row + 1 for part in parts for row in range(part.header.first, part.header.last + 1)),
        columns={field: column.header for field, column in header.fields.items()},
        ignored_columns=tuple(dict.fromkeys(ignored)),
        rows=sum(part.rows for part in parts),
        cases=cases,
        rejected=sum(part.rejected for part in parts),
        joined=sum(part.joined for part in parts),
    )
