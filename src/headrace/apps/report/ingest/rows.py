"""Rows below a header become cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.apps.report.data.cases import Case, Source, Status
from headrace.apps.report.ingest.cells import Broken, Cell, Grid, Rows, is_blank, text_of
from headrace.apps.report.ingest.columns import Column, Header
from headrace.apps.report.ingest.filling import fill_body, fill_sparse
from headrace.apps.report.ingest.grouping import grouped, joined, owning
from headrace.apps.report.ingest.ids import Ids
from headrace.apps.report.ingest.issues import IssueBook, Place
from headrace.apps.report.ingest.limits import MAX_TEXT
from headrace.apps.report.ingest.notes import is_footer, is_total
from headrace.apps.report.ingest.results import result_of
from headrace.apps.report.ingest.values.dates import is_day_first, values_at, when_of
from headrace.apps.report.ingest.values.durations import seconds_of
from headrace.apps.report.ingest.values.levels import level_of

#: Fields of `Case` that are taken as they stand.
TEXTS = (
    *("title", "module", "preconditions", "steps", "expected", "actual"),
    *("executor", "environment", "defect_id", "remark", "error"),
)
#: Fields of which totals have numbers at most.
_DESCRIBING = ("module", "preconditions", "steps", "expected", "actual", "priority")


class SheetRows:
    """The rows of one table of a sheet."""

    def __init__(self, grid: Grid, header: Header, book: IssueBook, ids: Ids) -> None:
        self._grid, self.header, self._book, self._ids = grid, header, book, ids
        self._fields = header.fields
        self._day_first = False
        #: Rows that are not empty, those of them that gave no case, and those that went on with the case above.
        self.rows = self.rejected = self.joined = 0

    def cases(self) -> list[Case]:
        """Return the cases; what is wrong is put into the book."""
        start = self.header.last + 1
        own = owning(self._grid, self.header)
        fill_body(self._grid, start)
        if self._grid.merges is None and "module" in self._fields:
            fill_sparse(self._grid.rows, start, self._fields["module"].index)
        body = self._grid.rows[start:]
        if "executed_at" in self._fields:
            self._day_first = is_day_first(values_at(body, self._fields["executed_at"].index))
        found = (
            self._case(number + first, part)
            for number, rows in grouped(self._grid, self.header, own)
            for first, part in self._apart(rows)
        )
        return [case for case in found if case]

    def reject_all(self, rule: str) -> None:
        """Put every row into the book as one that is no case."""
        for number, row in enumerate(self._grid.rows[self.header.last + 1 :], self.header.last + 2):
            if not all(is_blank(cell) for cell in row):
                self.rows, self.rejected = self.rows + 1, self.rejected + 1
                self._report_row(rule, number, row)

    def _report_row(self, rule: str, number: int, row: Sequence[Cell]) -> None:
        shown = " | ".join(text_of(cell) for cell in row if not is_blank(cell))
        self._book.add(rule, Place(self._grid.name, number), shown)

    def _apart(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """Yield the rows of a case, apart from a header or total that a page ends with and that names no case."""
        is_headed = len(rows) > 1 and self._why_not(rows[0]) in ("repeated_header", "total_row")
        if is_headed:
            yield 0, rows[:1]
        yield int(is_headed), rows[int(is_headed) :]

    def _case(self, number: int, rows: Rows) -> Case | None:
        row = joined(rows, self.header)
        if all(is_blank(cell) for cell in row):
            return None
        self.rows += len(rows)
        why_not = self._why_not(row)
        if why_not:
            self.rejected += len(rows)
            self._report_row(why_not, number, row)
            return None
        self.joined += len(rows) - 1
        values = self._values(number, row)
        text = text_of(self._cell(row, "case_id"))
        return Case(
            case_id=self._ids.given(text, self._place(number, "case_id")),
            source=Source(sheet=self._grid.name, row=number),
            **values,
        )

    def _why_not(self, row: Sequence[Cell]) -> str | None:
        """Return the rule by which a row is no case; None where it is one."""
        if self.header.is_repeated_in(row):
            return "repeated_header"
        status = result_of(row, self.header).status
        # A merged id may begin with a row that is empty.
        first = next((text_of(cell) for cell in row if not is_blank(cell)), "")
        if status is None and is_total(first) and not self._describes(row, 1):
            return "total_row"
        given = {name for name in self._fields if name != "module" and not is_blank(self._cell(row, name))}
        # One cell alone under an id or title is a heading of the rows below, or a note.
        is_note = status is None and is_footer(first) and not self._describes(row, 2)
        is_title_alone = given == {"title"} and "case_id" not in self._fields
        says = given & {"case_id", "title"} or status is not None or {"status", "steps"} <= given
        return None if not is_note and (is_title_alone or (says and len(given) > 1)) else "not_a_case"

    def _describes(self, row: Sequence[Cell], least: int) -> bool:
        """Whether a row whose first word is a total's or a note's describes a test all the same, in so many fields."""
        if not is_blank(self._cell(row, "case_id")):
            # A title may begin so, and no id does.
            return False
        texts = [text_of(cell) for cell in row if not is_blank(cell)]
        fields = [name for name in _DESCRIBING if any(map(str.isalpha, text_of(self._cell(row, name))))]
        return len(fields) >= least and not any(is_footer(text) or is_total(text) for text in texts[1:])

    def _values(self, number: int, row: Sequence[Cell]) -> dict[str, Any]:
        self._report_broken(number, row)
        values: dict[str, Any] = {name: self._text(number, row, name) for name in TEXTS if name in self._fields}
        values["status"] = self._result(number, row)
        for group in ("priority", "severity"):
            values[group] = self._level(number, row, group)
        values["executed_at"] = self._when(number, row)
        values["duration_seconds"] = self._seconds(number, row)
        values["extra"] = self._extra(row)
        return values

    def _cell(self, row: Sequence[Cell], field: str) -> Cell:
        column = self._fields.get(field)
        return row[column.index] if column and column.index < len(row) else None

    def _place(self, number: int, field: str) -> Place:
        column = self._fields.get(field)
        return Place(self._grid.name, number, column.header if column else "")

    def _report(self, rule: str, number: int, row: Sequence[Cell], field: str) -> None:
        """Add an issue of a field that says something; one that is empty is counted as missing."""
        cell = self._cell(row, field)
        if not is_blank(cell) and not isinstance(cell, Broken):
            self._book.add(rule, self._place(number, field), text_of(cell))

    def _report_broken(self, number: int, row: Sequence[Cell]) -> None:
        for column in self.header.columns:
            cell = row[column.index] if column.index < len(row) else None
            if isinstance(cell, Broken):
                rule = "broken_cell" if cell.text else "formula_without_value"
                self._book.add(rule, Place(self._grid.name, number, column.header), cell.text)

    def _text(self, number: int, row: Sequence[Cell], field: str) -> str:
        cell = self._cell(row, field)
        if isinstance(cell, str) and len(cell) > MAX_TEXT:
            self._report("text_cut", number, row, field)
        return text_of(cell)

    def _result(self, number: int, row: Sequence[Cell]) -> Status:
        status, column, differing = result_of(row, self.header)
        if column and differing:
            self._book.add("differing_results", Place(self._grid.name, number, column.header), differing)
        cell = row[column.index] if column and column.index < len(row) else None
        if column and status is None and not is_blank(cell) and not isinstance(cell, Broken):
            self._book.add("unknown_status", Place(self._grid.name, number, column.header), text_of(cell))
        return status or Status.UNKNOWN

    def _level(self, number: int, row: Sequence[Cell], group: str) -> str:
        cell = self._cell(row, group)
        found = level_of(cell, group)
        if found is None:
            self._report(f"unknown_{group}", number, row, group)
        return found or ""

    def _when(self, number: int, row: Sequence[Cell]) -> str | None:
        found = when_of(self._cell(row, "executed_at"), self._day_first)
        if found is None or found.is_ambiguous:
            self._report("ambiguous_date" if found else "bad_date", number, row, "executed_at")
        return found.text if found else None

    def _seconds(self, number: int, row: Sequence[Cell]) -> float | None:
        column = self._fields.get("duration_seconds")
        if column is None:
            return None
        found = seconds_of(self._cell(row, "duration_seconds"), 1 if column.unit is None else column.unit)
        if found is None:
            self._report("bad_duration", number, row, "duration_seconds")
        return found

    def _extra(self, row: Sequence[Cell]) -> dict[str, str]:
        columns = (column for column in self.header.columns if column.field is None)
        return {column.header: text for column in columns if (text := _at(row, column))}


def _at(row: Sequence[Cell], column: Column) -> str:
    return text_of(row[column.index]) if column.index < len(row) else ""
