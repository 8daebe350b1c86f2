"""A sheet of a workbook: a frozen header with filters, and cells that are never formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from headrace.apps.papers.template import Value
from headrace.apps.sheets.cells import safe_text

WIDEST = 60
#: Excel keeps 15 digits; longer numbers are written as text rather than changed.
_EXACT_BELOW = 10**15


def write_sheet(workbook: Workbook, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Add a sheet: header, rows, widths that fit, filters."""
    sheet = workbook.add_worksheet(name)
    bold = workbook.add_format({"bold": True, "bottom": 1})
    wrapped = workbook.add_format({"text_wrap": True, "valign": "top"})
    widths = [len(title) for title in header]
    for column, title in enumerate(header):
        sheet.write_string(0, column, safe_text(title), bold)
    last = 0
    for last, row in enumerate(rows, start=1):
        for column, value in enumerate(row):
            write_cell(sheet, last, column, value, wrapped)
            widths[column] = max(widths[column], len(str(value if value is not None else "")))
    for column, width in enumerate(widths):
        sheet.set_column(column, column, min(width + 2, WIDEST))
    sheet.freeze_panes(1, 1)
    sheet.autofilter(0, 0, last, len(header) - 1)


def write_cell(sheet: Worksheet, row: int, column: int, value: Value | None, style: Any) -> None:
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
