"""XLSX: a sheet of documents, one of all fields with their quotes, one of problems, one on the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import xlsxwriter
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from headrace.apps.papers.output.cells import safe_text
from headrace.apps.papers.output.files import written_whole
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.result import Status
from headrace.apps.papers.template import TemplateField, Value

_WIDEST = 60
#: Excel keeps 15 digits; longer numbers are written as text rather than changed.
_EXACT_BELOW = 10**15


def write_xlsx(path: Path, report: Report) -> None:
    """Write a report; the file appears whole or not at all."""
    with written_whole(path) as temporary:
        options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        workbook = xlsxwriter.Workbook(temporary, options)
        _write_documents(workbook, report)
        _write_fields(workbook, report)
        _write_problems(workbook, report)
        _write_run(workbook, report)
        workbook.close()


def _write_documents(workbook: Workbook, report: Report) -> None:
    fields = report.template.fields
    header = ["document", "state", "reason", *(_title(field) for field in fields), "message"]
    rows = [
        [row.name, row.state, row.reason, *_values(report, row.result), row.message or _notes(row.result)]
        for row in report.rows
    ]
    _write_sheet(workbook, "Documents", header, rows)


def _title(field: TemplateField) -> str:
    return f"{field.name} ({field.unit})" if field.unit else field.name


def _values(report: Report, result: Any) -> list[Any]:
    if result is None:
        return ["" for _ in report.template.fields]
    found = [result.fields[field.name] for field in report.template.fields]
    return [item.value if item.status is Status.FOUND else f"[{item.status}]" for item in found]


def _notes(result: Any) -> str:
    return "; ".join(result.notes) if result is not None else ""


def _write_fields(workbook: Workbook, report: Report) -> None:
    header = [
        "document", "field", "value", "status", "quote", "page", "char_start", "char_end", "alignment", "note",
        "document_id",
    ]  # fmt: skip
    rows = [
        [
            row.name, name, item.value, item.status.value, item.quote, item.page, item.char_start, item.char_end,
            item.alignment.value if item.status is Status.FOUND else "", item.note, row.document_id,
        ]
        for row in report.rows
        if row.result is not None
        for name, item in row.result.fields.items()
    ]  # fmt: skip
    _write_sheet(workbook, "Fields", header, rows)


def _write_problems(workbook: Workbook, report: Report) -> None:
    rows = [[problem.name, problem.reason, problem.message] for problem in report.problems]
    _write_sheet(workbook, "Problems", ["document", "reason", "message"], rows)


def _write_run(workbook: Workbook, report: Report) -> None:
    record, template, summary = report.record, report.template, report.summary()
    facts: list[tuple[str, Any]] = [
        ("tool", record.tool),
        ("written at (UTC)", record.written_at.strftime("%Y-%m-%d %H:%M:%S")),
        ("model", ", ".join(record.models)),
        ("prompt version", ", ".join(record.prompt_versions)),
        ("template", template.name),
        ("template version", str(template.version)),
        ("template digest", template.digest),
        ("readers", ", ".join(record.readers)),
        ("run", record.run_id),
        ("batch", record.batch_id),
    ]
    counts = ["input_files", "duplicates", "skipped", "documents", "extracted", "unreadable", "failed"]
    facts += [(name.replace("_", " "), summary[name]) for name in counts]
    facts += [(f"fields {status.replace('_', ' ')}", count) for status, count in summary["fields"].items()]
    facts += [(name.replace("_", " "), count) for name, count in summary["usage"].items()]
    _write_sheet(workbook, "Run", ["what", "value"], facts)


def _write_sheet(workbook: Workbook, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    sheet = workbook.add_worksheet(name)
    bold = workbook.add_format({"bold": True, "bottom": 1})
    wrapped = workbook.add_format({"text_wrap": True, "valign": "top"})
    widths = [len(title) for title in header]
    for column, title in enumerate(header):
        sheet.write_string(0, column, safe_text(title), bold)
    last = 0
    for last, row in enumerate(rows, start=1):
        for column, value in enumerate(row):
            _write_cell(sheet, last, column, value, wrapped)
            widths[column] = max(widths[column], len(str(value if value is not None else "")))
    for column, width in enumerate(widths):
        sheet.set_column(column, column, min(width + 2, _WIDEST))
    sheet.freeze_panes(1, 1)
    sheet.autofilter(0, 0, last, len(header) - 1)


def _write_cell(sheet: Worksheet, row: int, column: int, value: Value | None, style: Any) -> None:
    """Numbers stay numbers; everything else is text, never a formula or a link."""
    match value:
        case None | "":
            sheet.write_blank(row, column, None, style)
        case bool():
            sheet.write_boolean(row, column, value, style)
        case int() | float() if abs(value) < _EXACT_BELOW:
            sheet.write_number(row, column, value, style)
        case list():
            sheet.write_string(row, column, safe_text("; ".join(value)), style)
        case _:
            sheet.write_string(row, column, safe_text(str(value)), style)
