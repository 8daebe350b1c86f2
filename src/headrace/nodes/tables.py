"""Rows of tables: CSV as text to rows and back, and rows as the JSON of items."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.nodes.base import NodeError

MAX_ROWS, MAX_COLUMNS = 200_000, 4_000
#: Characters of one cell of CSV: as much as a file may have.
MAX_CELL = 64 * 1024 * 1024
#: Programs that open CSV take a cell that begins so as a formula; some of them the wide signs, too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_RANGE = re.compile(r"\$?([A-Z]{1,3})\$?([1-9][0-9]{0,6}):\$?([A-Z]{1,3})\$?([1-9][0-9]{0,6})")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV text is to be read."""

    delimiter: str = ","
    #: A quote that is not closed ends with the text, and is no error.
    relaxed: bool = False
    #: Records that have another number of cells than the first may be left out, so many of them; None: they are errors.
    skipped: float | None = None
    #: Records that are read at most.
    most: int | None = None


def read_csv(text: str, dialect: Dialect) -> list[list[Any]]:
    """Return the rows of a CSV text, blank lines left out. Raises NodeError naming the line.

    >>> read_csv('a,b\\n1,"x, y"\\n', Dialect())
    [['a', 'b'], ['1', 'x, y']]
    """
    # Of the whole process, and much too low for texts: it is raised, never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter, strict=not dialect.relaxed)
    rows: list[list[Any]] = []
    bad = 0
    try:
        for row in reader:
            if not row:
                continue
            if rows and len(row) != len(rows[0]):
                bad += 1
                _check_skipped(bad, dialect, f"line {reader.line_num}", len(row), len(rows[0]))
                continue
            rows.append(row)
            check_size(len(rows), len(row))
            if dialect.most is not None and len(rows) >= dialect.most:
                break
    except csv.Error as error:
        raise NodeError(f"the file is no CSV at line {reader.line_num}: {error}") from None
    return rows


def check_size(rows: int, columns: int) -> None:
    """Raise NodeError for more rows or columns than a table may have."""
    if rows > MAX_ROWS or columns > MAX_COLUMNS:
        raise NodeError(f"the table is too large: at most {MAX_ROWS:,} rows and {MAX_COLUMNS:,} columns are read")


def _check_skipped(bad: int, dialect: Dialect, where: str, cells: int, expected: int) -> None:
    if dialect.skipped is None:
        fix = "correct it, set options.delimiter, or switch options.skipRecordsWithErrors on"
        raise NodeError(f"{where} of the CSV has {cells} cells and the first has {expected}: {fix}")
    if bad > dialect.skipped:
        raise NodeError(
            f"more than {dialect.skipped:.0f} records of the CSV have errors (options.skipRecordsWithErrors)"
        )


def as_records(rows: Sequence[Sequence[Any]], *, header: bool, empty: bool) -> Iterator[dict[str, Any]]:
    """Yield the JSON of an item for each row that is not blank: by the names of the header, or {"row": […]}.

    `empty`: empty cells are there as empty texts.

    >>> list(as_records([["a", "b"], [1, None]], header=True, empty=False))
    [{'a': 1}]
    """
    names = _names(rows[0]) if header and rows else []
    for row in rows[1:] if header else rows:
        if all(cell in (None, "") for cell in row):
            continue
        if header:
            cells = zip(names, row, strict=False)
            yield {name: _cell(cell) for name, cell in cells if empty or cell not in (None, "")}
        else:
            yield {"row": [_cell(cell) for cell in row if empty or cell not in (None, "")]}


def part_of(rows: list[list[Any]], wanted: str) -> list[list[Any]]:
    """Return the rows of a range such as "B2:D10", or those from a row that is counted from 0. Raises NodeError.

    >>> part_of([["a", "b"], ["c", "d"]], "B1:B2"), part_of([["a"], ["b"]], "1")
    ([['b'], ['d']], [['b']])
    """
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 8:
        return rows[int(wanted) :]
    found = _RANGE.fullmatch(wanted.upper())
    if found is None:
        raise NodeError(f'options.range must be a number of a row, or as "B2:D10", got {wanted[:40]!r}')
    left, top, right, bottom = _column(found[1]), int(found[2]), _column(found[3]), int(found[4])
    return [row[left - 1 : right] for row in rows[top - 1 : bottom]]


def write_csv(records: Sequence[Mapping[str, Any]], columns: Sequence[str], *, delimiter: str, header: bool) -> str:
    """Return records as CSV; without `columns` all names that there are. Texts stand in quotes, numbers as they are.

    Texts that a program would take as a formula begin with an apostrophe; and within quotes no sign of theirs begins
    a cell for a program that splits at another delimiter.

    >>> write_csv([{"a": "=1+1", "b": -5}], [], delimiter=",", header=True)
    '"a","b"\\r\\n"\\'=1+1",-5\\r\\n'
    """
    names = list(columns) or list(dict.fromkeys(name for record in records for name in record))
    lines = [[_quoted(name) for name in names]] if header else []
    lines += [[_written(record.get(name), delimiter) for name in names] for record in records]
    # A line of nothing at all is no record.
    return "".join((delimiter.join(cells) or '""') + "\r\n" for cells in lines)


def _written(value: Any, delimiter: str) -> str:
    match value:
        case None:
            return ""
        case bool() | int() | float():
            number = json.dumps(value)
            return f'"{number}"' if delimiter in number else number
        case str():
            return _quoted(value)
    return _quoted(json.dumps(value, ensure_ascii=False))


def _quoted(text: str) -> str:
    text = text.replace('"', '""')
    return f'"\'{text}"' if text.startswith(_FORMULA) else f'"{text}"'


def _cell(value: Any) -> Any:
    return "" if value is None else value


def _names(cells: Iterable[Any]) -> list[str]:
    """Return a name for each column: empty ones are called as spreadsheets do, and no two are the same."""
    names: list[str] = []
    taken: set[str] = set()
    for cell in cells:
        base = str(cell) if cell not in (None, "") else "__EMPTY"
        name, number = base, 0
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        names.append(name)
    return names


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
