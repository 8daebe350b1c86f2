"""The cells of a sheet that comes back, from CSV or from a workbook, with their lines as spreadsheet programs count."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.apps.papers.review.errors import Mistake, ReviewError, SheetError
from headrace.apps.papers.review.sheet import CHECKED, FILLED, KEY
from headrace.apps.papers.review.workbook import SHEET

MAX_BYTES = 100 * 2**20
#: Columns that review sheets alone have.
_OURS = (*FILLED, KEY)
_NEEDED = (*CHECKED, *_OURS)
_NAME_ONE = "Name the review.xlsx or review.csv that `headrace papers extract` wrote."
_SHOWN_CHARS = 60
_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class ReadLine:
    """One line: its cells by column; what is empty is an empty text."""

    number: int
    cells: Mapping[str, object]


def read_sheet(path: Path) -> list[ReadLine]:
    """Read a review sheet: CSV (UTF-8), or a workbook (XLSX, ODS) with the sheet Review. Empty lines are left out.

    Raises SheetError for a sheet without its columns, ReviewError for what is no sheet at all.
    """
    content = _content(path)
    rows = _workbook(path, content) if content.startswith(b"PK") else _csv(path, content)
    if not rows:
        raise SheetError(path.name, [Mistake(1, "document", "must be the header of a review sheet")])
    header = [str(title).strip().casefold() for title in rows[0]]
    missing = [name for name in _NEEDED if header.count(name) != 1]
    # Not a sheet that lost a column, but another kind of file.
    if missing[-len(_OURS) :] == list(_OURS):
        raise ReviewError(
            f"{path} is no review sheet: it must be CSV or XLSX (or ODS) with {', '.join(_OURS)} among the columns of "
            f"its first line, got {_shortened(rows[0])}. {_NAME_ONE}"
        )
    if missing:
        raise SheetError(path.name, [Mistake(1, name, "must stand once in the header") for name in missing])
    lines = [ReadLine(number, _by_column(header, row)) for number, row in enumerate(rows[1:], start=2)]
    return [line for line in lines if any(cell != "" for cell in line.cells.values())]


def _shortened(row: Sequence[object]) -> str:
    said = ",".join(map(str, row)).strip()
    return repr(said if len(said) <= _SHOWN_CHARS else said[: _SHOWN_CHARS - 1] + "…")


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ReviewError(f"{path} cannot be read: {error.strerror or error}. Name an existing sheet.") from None
    if len(content) > MAX_BYTES:
        raise ReviewError(f"{path} is larger than {MAX_BYTES // 2**20} MiB; that is no review sheet.")
    return content


def _by_column(header: Sequence[str], row: Sequence[object]) -> dict[str, object]:
    cells = dict(zip(header, row, strict=False))
    return {name: _blank(cells.get(name, "")) for name in _NEEDED}


def _blank(cell: object) -> object:
    return "" if cell is None or (isinstance(cell, str) and not cell.strip()) else cell


def _workbook(path: Path, content: bytes) -> list[list[object]]:
    from python_calamine import CalamineError, CalamineWorkbook, WorksheetNotFound

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        return [list(row) for row in book.get_sheet_by_name(SHEET).to_python(skip_empty_area=False)]
    except WorksheetNotFound:
        raise ReviewError(f"{path} has no sheet {SHEET!r}. Read back the workbook that the run wrote.") from None
    except (CalamineError, OSError, ValueError) as error:
        raise ReviewError(f"{path} cannot be read as a workbook: {error}. Save it as XLSX and try again.") from None


def _csv(path: Path, content: bytes) -> list[list[object]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ReviewError(
            f"{path} must be CSV in UTF-8, or XLSX, and is neither. {_NAME_ONE} Save a CSV in UTF-8."
        ) from None
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [list(row) for row in reader]
    except csv.Error as error:
        raise ReviewError(
            f"{path} must be CSV or XLSX, and is not CSV at line {reader.line_num}: {error}. {_NAME_ONE}"
        ) from None
