"""Filling in a review sheet as a person does: through openpyxl, as a stand-in for a spreadsheet program, or as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl

Row = dict[str, Any]
#: What a person fills in, by document, row and field: `("a.pdf", 1, "dose")`.
Filled = Mapping[tuple[str, int | None, str], Row]


def place_of(row: Row) -> tuple[str, int | None, str]:
    """Return how tests name a line."""
    return row["document"], int(float(row["row"])) if row["row"] not in (None, "") else None, row["field"]


def fill_xlsx(path: Path, filled: Filled, *, to: Path | None = None) -> Path:
    """Open a sheet, type into some cells, save it; return where."""
    book = openpyxl.load_workbook(path)
    sheet = book["Review"]
    header = {cell.value: cell.column for cell in sheet[1]}
    left = set(filled)
    for line in sheet.iter_rows(min_row=2):
        place = place_of({title: line[column - 1].value for title, column in header.items()})
        for title, value in filled.get(place, {}).items():
            cell = sheet.cell(line[0].row, header[title])
            cell.value = value
            if isinstance(value, str):
                cell.data_type = "s"  # typed as text, even where it looks like a formula
        left.discard(place)
    assert not left
    book.save(to or path)
    return to or path


def read_xlsx(path: Path) -> list[Row]:
    """Return the lines of a sheet."""
    header, *lines = openpyxl.load_workbook(path)["Review"].iter_rows(values_only=True)
    return [dict(zip([str(title) for title in header], line, strict=True)) for line in lines]


def read_csv(path: Path) -> list[Row]:
    """Return the lines of a table."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill_csv(
    path: Path, filled: Filled, *, to: Path | None = None, change: Callable[[list[Row]], list[Row]] = list,
    encoding: str = "utf-8-sig", delimiter: str = ",",
) -> Path:  # fmt: skip
    """Type into some cells of a CSV and save it, as a program with other habits may; return where."""
    rows = read_csv(path)
    columns = list(rows[0])
    left = set(filled)
    for row in rows:
        place = place_of(row)
        row.update(filled.get(place, {}))
        left.discard(place)
    assert not left
    to = to or path
    with to.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(change(rows))
    return to
