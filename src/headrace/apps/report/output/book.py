"""A workbook of tables: text is never a formula or a link, numbers stay numbers, links lead to other sheets only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from xlsxwriter.worksheet import Worksheet

from headrace.apps.report.charts.palette import STATUS_COLOURS
from headrace.apps.report.output.tables.base import Column, Table
from headrace.apps.report.output.view import View
from headrace.apps.sheets.cells import safe_text
from headrace.apps.sheets.workbooks import new_workbook

#: Excel's limits: rows of a sheet, and links of one (65,530).
MOST_ROWS = 1_048_576
MOST_LINKS = 60_000
#: Excel keeps 15 digits; longer numbers are written as text rather than changed.
_EXACT_BELOW = 10**15
_LONG_WIDTH, _WIDEST, _NARROWEST = 44, 32, 9
#: So many rows are looked at to find how wide a column is.
_SAMPLE = 300
_MOST_IDS = 200
_NUMBERS = {"number": "General", "percent": '0.0#" %"', "seconds": "0.###"}


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a table stands: its sheet, its first and last row (from 0), and the columns by key."""

    sheet: str
    first: int
    last: int
    columns: Mapping[str, int]

    def cells(self, key: str, most: int = MOST_ROWS) -> list[Any]:
        """Return the cells of a column as charts name them: at most so many."""
        column = self.columns[key]
        return [self.sheet, self.first, column, min(self.last, self.first + most - 1), column]


@dataclass
class Book:
    """A workbook that is being written."""

    path: Path
    view: View
    #: Where each case and cluster will stand: sheet and row.
    targets: dict[str, dict[str, tuple[str, int]]] = field(default_factory=lambda: {"case": {}, "cluster": {}})
    #: Tables by name.
    placed: dict[str, Placed] = field(default_factory=dict)
    _links: dict[str, int] = field(default_factory=dict)

    @cached_property
    def workbook(self) -> Any:
        """The workbook of the library."""
        return new_workbook(self.path)

    @cached_property
    def styles(self) -> dict[str, Any]:
        """Formats by what they are for."""
        add, top = self.workbook.add_format, {"valign": "top"}
        plain = {kind: add({"num_format": form, **top}) for kind, form in _NUMBERS.items()}
        bold = {f"{kind}.bold": add({"num_format": form, "bold": True, "top": 1}) for kind, form in _NUMBERS.items()}
        status = {
            status.value: add(
                {"font_color": "#FFFFFF" if status != "unknown" else "#1C2026", "bg_color": colour, **top}
            )
            for status, colour in STATUS_COLOURS.items()
        }
        return plain | bold | status | {
            "head": add({"bold": True, "bottom": 1, "bg_color": "#E8ECF1", "text_wrap": True, "valign": "vcenter"}),
            "text": add(top),
            "text.bold": add({"bold": True, "top": 1}),
            "long": add({"text_wrap": True, **top}),
            "link": add({"font_color": "#0B57A4", "underline": 1, **top}),
            "title": add({"bold": True, "font_size": 16}),
            "heading": add({"bold": True, "font_size": 12}),
            "pass": add({"bold": True, "font_size": 14, "font_color": "#11703F"}),
            "fail": add({"bold": True, "font_size": 14, "font_color": "#B3200A"}),
            "undecidable": add({"bold": True, "font_size": 14, "font_color": "#8A5A00"}),
        }  # fmt: skip

    def add_sheet(self, key: str) -> Worksheet:
        """Add a sheet with its name in the language of the report."""
        return self.workbook.add_worksheet(self.view.word(f"sheet.{key}"))

    def write(self, sheet: Worksheet, table: Table, top: int = 0, *, heading: str = "", compact: bool = False) -> int:
        """Write a table and return the row after it. `compact` rows keep one line."""
        if heading:
            sheet.write_string(top, 0, heading, self.styles["heading"])
            top += 1
        for column, shown in enumerate(table.columns):
            title = shown.title or self.view.word(f"column.{shown.key}")
            sheet.write_string(top, column, safe_text(title), self.styles["head"])
        rows = table.rows[: MOST_ROWS - top - 2]
        for number, row in enumerate(rows, start=top + 1):
            for column, (shown, value) in enumerate(zip(table.columns, row, strict=True)):
                self._cell(sheet, (number, column), shown, value, compact=compact)
        last = top + len(rows)
        keys = {shown.key: index for index, shown in enumerate(table.columns)}
        self.placed[table.name] = Placed(sheet.get_name(), top + 1, last, keys)
        return last + 1 if table.total is None else self._total(sheet, table, last + 1)

    def write_alone(self, key: str, table: Table, *, compact: bool = False) -> Worksheet:
        """Write a table on a sheet of its own, with a frozen header, filters, and widths that fit."""
        sheet = self.add_sheet(key)
        self.write(sheet, table, compact=compact)
        self.finish(sheet, table)
        return sheet

    def finish(self, sheet: Worksheet, table: Table) -> None:
        """Freeze and filter the table at the top of a sheet, and set widths by it."""
        placed = self.placed[table.name]
        sheet.freeze_panes(placed.first, 1)
        if table.rows:
            sheet.autofilter(placed.first - 1, 0, placed.last, len(table.columns) - 1)
        self.widths(sheet, table)

    def widths(self, sheet: Worksheet, table: Table) -> None:
        """Set widths that fit the rows of a table."""
        for index, column in enumerate(table.columns):
            longest = max((_length(row[index]) for row in table.rows[:_SAMPLE]), default=0)
            title = column.title or self.view.word(f"column.{column.key}")
            fitting = min(max(longest, _length(title), _NARROWEST) + 2, _WIDEST)
            sheet.set_column(index, index, _LONG_WIDTH if column.kind == "long" and longest > _WIDEST else fitting)

    def _total(self, sheet: Worksheet, table: Table, row: int) -> int:
        for index, (column, value) in enumerate(zip(table.columns, table.total or (), strict=True)):
            if isinstance(value, int | float):
                sheet.write_number(row, index, value, self.styles[f"{column.kind}.bold"])
            else:
                sheet.write_string(row, index, safe_text(str(value or "")), self.styles["text.bold"])
        return row + 1

    def _cell(self, sheet: Worksheet, at: tuple[int, int], column: Column, value: Any, *, compact: bool) -> None:
        match column.kind:
            case _ if value is None or value == "":
                return
            case "number" | "percent" | "seconds" if _is_exact(value):
                sheet.write_number(*at, value, self.styles[column.kind])
            case "status":
                sheet.write_string(*at, self.view.word.label("status", value), self.styles[value])
            case "case" | "cluster":
                self._link(sheet, at, column.kind, value)
            case "cases":
                sheet.write_string(*at, safe_text(", ".join(value[:_MOST_IDS])), self.styles["long"])
            case "long" if not compact:
                sheet.write_string(*at, safe_text(str(value)), self.styles["long"])
            case _ if _is_exact(value):
                sheet.write_number(*at, value, self.styles["number"])
            case _:
                sheet.write_string(*at, safe_text(str(value)), self.styles["text"])

    def _link(self, sheet: Worksheet, at: tuple[int, int], kind: str, value: str) -> None:
        """An id that leads to its row on another sheet; on its own sheet it is text."""
        name = sheet.get_name()
        target = self.targets[kind].get(value)
        count = self._links.get(name, 0)
        if target is None or target[0] == name or count >= MOST_LINKS:
            sheet.write_string(*at, safe_text(value), self.styles["text"])
            return
        self._links[name] = count + 1
        where = f"internal:'{target[0]}'!A{target[1] + 1}"
        sheet.write_url(*at, where, self.styles["link"], string=safe_text(value))


def _length(value: object) -> int:
    """How many narrow letters wide a value is: signs beyond Latin ones take two."""
    text = str(value)[:60] if value is not None else ""
    return sum(2 if ord(sign) > 0x2E7F else 1 for sign in text.split("\n", 1)[0])


def _is_exact(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(value) < _EXACT_BELOW


def targets_of(name: str, ids: Sequence[str], first: int = 1) -> dict[str, tuple[str, int]]:
    """Return where each id will stand on a sheet."""
    return {one: (name, first + index) for index, one in enumerate(ids)}
