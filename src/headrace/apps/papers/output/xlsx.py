"""XLSX: documents, the rows of each group, all fields with their quotes, disagreements, problems, and the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from xlsxwriter.workbook import Workbook

from headrace.apps.papers.output.facts import run_facts
from headrace.apps.papers.output.lines import lines_of
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.output.sheets import write_sheet
from headrace.apps.papers.output.table import alignment_of
from headrace.apps.papers.result import FieldResult, Finding, RowResult, Status
from headrace.apps.papers.template import RowGroup, TemplateField, Value
from headrace.apps.sheets.files import written_whole
from headrace.apps.sheets.workbooks import new_workbook

#: Excel's limit for the name of a sheet.
_MAX_NAME_CHARS = 31


def write_xlsx(path: Path, report: Report) -> None:
    """Write a report; the file appears whole or not at all."""
    with written_whole(path) as temporary:
        workbook = new_workbook(temporary)
        _write_documents(workbook, report)
        for name, group in _sheet_names(report.template.rows).items():
            _write_rows(workbook, name, group, report)
        _write_fields(workbook, report)
        _write_disagreements(workbook, report)
        _write_problems(workbook, report)
        write_sheet(workbook, "Run", ["what", "value"], run_facts(report))
        workbook.close()


def _write_documents(workbook: Workbook, report: Report) -> None:
    fields = report.template.fields
    header = ["document", "state", "reason", *(_title(field) for field in fields), "message"]
    rows = [
        [row.name, row.state, row.reason, *_values(report, row.result), row.message or _notes(row.result)]
        for row in report.rows
    ]
    write_sheet(workbook, "Documents", header, rows)


def _title(field: TemplateField) -> str:
    return f"{field.name} ({field.unit})" if field.unit else field.name


def _values(report: Report, result: Any) -> list[Any]:
    if result is None:
        return ["" for _ in report.template.fields]
    return [_value_or_status(result.fields[field.name]) for field in report.template.fields]


def _value_or_status(found: Finding) -> Value | None:
    """What counts as found stands there as it is; everything else says what it is."""
    return found.value if found.status is Status.FOUND else f"[{found.status}]"


def _notes(result: Any) -> str:
    return "; ".join(result.notes) if result is not None else ""


def _sheet_names(groups: Sequence[RowGroup]) -> dict[str, RowGroup]:
    """A name for the sheet of each group: short enough for Excel, and no two alike."""
    names: dict[str, RowGroup] = {}
    for group in groups:
        name = f"Rows {group.name}"[:_MAX_NAME_CHARS]
        for number in range(2, len(groups) + 1):
            if name in names:
                name = f"{name[: _MAX_NAME_CHARS - 3]}~{number}"
        names[name] = group
    return names


def _write_rows(workbook: Workbook, name: str, group: RowGroup, report: Report) -> None:
    """A line per row of a group: its values first, then the quote and page of each."""
    places = [f"{field.name} {what}" for field in group.fields for what in ("quote", "page")]
    header = ["document", "row", *(_title(field) for field in group.fields), *places, "document_id"]
    rows = [
        [row.name, number, *_cells_of_row(group, cells), row.document_id]
        for row in report.rows
        if row.result is not None
        for number, cells in enumerate(row.result.rows.get(group.name, ()), start=1)
    ]
    write_sheet(workbook, name, header, rows)


def _cells_of_row(group: RowGroup, row: RowResult) -> Iterator[Value | None]:
    found = [row[field.name] for field in group.fields]
    yield from (_value_or_status(one) for one in found)
    for one in found:
        yield from (one.quote, one.page)


def _write_fields(workbook: Workbook, report: Report) -> None:
    header = [
        "document", "field", "value", "status", "quote", "page", "char_start", "char_end", "alignment", "note",
        "section", "agreement", "document_id",
    ]  # fmt: skip
    rows = [
        [
            line.name, line.field.name, line.found.value, line.found.status.value, *_evidence(line.found),
            line.found.section, line.agreement, line.place.document_id,
        ]
        for line in lines_of(report.template, report.rows)
        if not line.place.group
    ]  # fmt: skip
    write_sheet(workbook, "Fields", header, rows)


def _evidence(found: FieldResult) -> list[Any]:
    return [found.quote, found.page, found.char_start, found.char_end, alignment_of(found), found.note]


def _write_disagreements(workbook: Workbook, report: Report) -> None:
    said = ("value", "status", "quote", "page", "said by")
    header = ["document", "group", "row", "row name", "field"]
    header += [f"{which} {what}" for which in ("first", "second") for what in said] + ["document_id"]
    rows = [
        [line.name, line.place.group, line.place.row or None, line.row_name, line.field.name]
        + [cell for one in line.candidates for cell in (one.value, one.status.value, one.quote, one.page, one.by)]
        + [line.place.document_id]
        for line in lines_of(report.template, report.rows)
        if line.candidates is not None
    ]
    write_sheet(workbook, "Disagreements", header, rows)


def _write_problems(workbook: Workbook, report: Report) -> None:
    rows = [[problem.name, problem.reason, problem.message] for problem in report.problems]
    write_sheet(workbook, "Problems", ["document", "reason", "message"], rows)
