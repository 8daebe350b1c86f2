"""The review sheet as XLSX: lists to choose from, a frozen header, filters, and only the person's columns unlocked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from xlsxwriter.utility import xl_col_to_name
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from headrace.apps.papers.output.cells import shown
from headrace.apps.papers.output.sheets import write_cell
from headrace.apps.papers.output.table import Cells
from headrace.apps.papers.review.edits import SILENT
from headrace.apps.papers.review.sheet import ACCEPT, COLUMNS, EDITED_VALUE, FILLED, KEY, SheetLine
from headrace.apps.papers.template import TemplateField
from headrace.apps.sheets.files import written_whole
from headrace.apps.sheets.workbooks import new_workbook

SHEET, HELP, CHOICES = "Review", "How to", "Choices"
_WIDTHS = {
    "document": 22, "group": 9, "row": 5, "row_name": 14, "field": 16, "value": 18, "unit": 8, "quote": 56, "page": 6,
    "second_value": 18, "second_quote": 56, "second_page": 6, "description": 36, "note": 36, "section": 18,
    ACCEPT: 9, EDITED_VALUE: 22, "comment": 30, "reviewer": 12,
}  # fmt: skip
_LINE_POINTS, _MOST_LINES = 15.0, 20
#: Shown only where they say something.
_OPTIONAL = ("group", "row", "row_name", "second_value", "second_quote", "second_page")
_USUAL_WIDTH = 12
#: Cells that one rule of a sheet names; programs read long lists badly.
_CELLS_OF_A_RULE = 500
#: A program may guess the type of what is typed there: numbers are read in the notation of the person's country.
_GUESSED = ("number", "integer")

HELP_TEXT = (
    "Each line of the sheet Review is one value. Look at its quote, on its page of the document, and fill in:",
    "accept: yes if the value (or the status, where there is no value) is right, no if it is wrong.",
    "Where two extractions differ: first or second for the one that is right, no if neither is.",
    "edited_value: the right value, where another one is right. accept is then no or empty.",
    "edited_value may also be [not reported], [not applicable] or [unclear].",
    "Numbers are in the unit of their line; dates are 2021, 2021-03 or 2021-03-05; lists have ; between items.",
    "comment: whatever others should know. reviewer: your name or initials, on every line that you decide.",
    "accept: open takes a decision back. Lines that you leave empty stay as they are.",
    "Then: headrace papers review THIS-FILE --out FOLDER. Mistakes are named; nothing is changed until all are right.",
)


def write_workbook(path: Path, lines: Sequence[SheetLine]) -> None:
    """Write the sheet; the file appears whole or not at all."""
    with written_whole(path) as temporary:
        workbook = new_workbook(temporary)
        sheet = workbook.add_worksheet(SHEET)
        _write_lines(workbook, sheet, lines)
        _write_choices(workbook, sheet, lines)
        _write_help(workbook)
        workbook.close()


def _write_lines(workbook: Workbook, sheet: Worksheet, lines: Sequence[SheetLine]) -> None:
    header = workbook.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
    locked = workbook.add_format({"text_wrap": True, "valign": "top"})
    guessed = workbook.add_format({"text_wrap": True, "valign": "top", "locked": False, "bg_color": "#FFF9E5"})
    text = workbook.add_format(
        {"text_wrap": True, "valign": "top", "locked": False, "bg_color": "#FFF9E5", "num_format": "@"}
    )
    hidden = _hidden(lines)
    sheet.set_row(0, 2 * _LINE_POINTS)
    for column, title in enumerate(COLUMNS):
        sheet.write_string(0, column, title, header)
        sheet.set_column(column, column, _WIDTHS.get(title, _USUAL_WIDTH), None, {"hidden": title in hidden})
    for row, line in enumerate(lines, start=1):
        sheet.set_row(row, _height(line.cells()))
        number = line.line.field.type in _GUESSED
        for column, (title, value) in enumerate(zip(COLUMNS, line.cells(), strict=True)):
            style = locked if title not in FILLED else guessed if number and title == EDITED_VALUE else text
            write_cell(sheet, row, column, value, style)
    sheet.freeze_panes(1, COLUMNS.index("document") + 1)
    sheet.autofilter(0, 0, max(len(lines), 1), len(COLUMNS) - 1)
    # Without a password: against slips, not against people. Sorting stays possible nowhere, filtering everywhere.
    sheet.protect("", {"autofilter": True, "format_columns": True, "format_rows": True, "select_locked_cells": True})


def _height(cells: Cells) -> float:
    """Points for the lines that the longest text takes when it is wrapped; not every program finds that by itself."""
    lines = 1
    for title, cell in zip(COLUMNS, cells, strict=True):
        width = _WIDTHS.get(title, _USUAL_WIDTH)
        if title != KEY and isinstance(cell, str | list):
            lines = max(lines, sum(1 + len(part) // width for part in shown(cell).splitlines()))
    return _LINE_POINTS * min(lines, _MOST_LINES)


def _hidden(lines: Sequence[SheetLine]) -> set[str]:
    """The key, and columns that are empty throughout."""
    cells = [dict(zip(COLUMNS, line.cells(), strict=True)) for line in lines]
    return {KEY} | {title for title in _OPTIONAL if all(row[title] in (None, "") for row in cells)}


def _write_choices(workbook: Workbook, sheet: Worksheet, lines: Sequence[SheetLine]) -> None:
    """Offer what may be chosen as lists; those of categories stand in a hidden sheet, for they may be long."""
    lists = workbook.add_worksheet(CHOICES)
    lists.hide()
    for row, rows in _by_choices(lines).items():
        _offer(sheet, COLUMNS.index(ACCEPT), rows, {"validate": "list", "source": list(row)})
    for column, (choices, rows) in enumerate(_by_field(lines).items()):
        for number, choice in enumerate(choices):
            lists.write_string(number, column, choice)
        letter = xl_col_to_name(column)
        source = f"={CHOICES}!${letter}$1:${letter}${len(choices)}"
        _offer(sheet, COLUMNS.index(EDITED_VALUE), rows, {"validate": "list", "source": source})


def _by_choices(lines: Sequence[SheetLine]) -> dict[tuple[str, ...], list[int]]:
    found: dict[tuple[str, ...], list[int]] = {}
    for row, line in enumerate(lines, start=1):
        found.setdefault(line.choices, []).append(row)
    return found


def _by_field(lines: Sequence[SheetLine]) -> dict[tuple[str, ...], list[int]]:
    found: dict[tuple[str, ...], list[int]] = {}
    for row, line in enumerate(lines, start=1):
        choices = _choices_of(line.line.field)
        if choices:
            found.setdefault((*choices, *SILENT), []).append(row)
    return found


def _choices_of(field: TemplateField) -> tuple[str, ...]:
    return ("true", "false") if field.type == "boolean" else field.enum


def _offer(sheet: Worksheet, column: int, rows: Sequence[int], rule: dict[str, Any]) -> None:
    told = {
        "error_title": "Not one of the list",
        "error_message": "Choose one of the list, or leave the cell empty.",
    }
    for spans in _portions(_spans(rows)):
        others = [[first, column, last, column] for first, last in spans]
        first, last = spans[0]
        sheet.data_validation(first, column, last, column, {**rule, **told, "other_cells": others[1:]})


def _spans(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Rows that follow each other, as first and last."""
    spans: list[tuple[int, int]] = []
    for row in rows:
        if spans and spans[-1][1] == row - 1:
            spans[-1] = (spans[-1][0], row)
        else:
            spans.append((row, row))
    return spans


def _portions(spans: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    for start in range(0, len(spans), _CELLS_OF_A_RULE):
        yield spans[start : start + _CELLS_OF_A_RULE]


def _write_help(workbook: Workbook) -> None:
    sheet = workbook.add_worksheet(HELP)
    wrapped = workbook.add_format({"text_wrap": True, "valign": "top"})
    sheet.set_column(0, 0, 110)
    for row, text in enumerate(HELP_TEXT):
        sheet.write_string(row, 0, text, wrapped)
