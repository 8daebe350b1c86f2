"""Rows of delimited text (csv, tsv): its encoding and its delimiter are told by its content."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from headrace.apps.report.ingest import limits
from headrace.apps.report.ingest.cells import Grid, Rows
from headrace.apps.report.ingest.refusing import unreadable

_BLOCK = 256 * 1024
#: In this order: the first that the whole file is correct in.
ENCODINGS = ("utf-8", "gb18030")
DELIMITERS = (",", ";", "\t")
#: Characters and lines of one row, which may have line ends within quotes.
MAX_ROW_CHARS, MAX_ROW_LINES = 1_000_000, 5_000
#: Characters of one cell. The limit of the csv module is one for the whole process, and others may raise it.
MAX_CELL_CHARS = 131_072
_SAMPLED_LINES, _SAMPLED_CHARS = 30, 65_536


def read_delimited(path: Path) -> Grid:
    """Return the rows of a text file as a sheet of the file's name. Raises UnreadableFileError."""
    encoding = _encoding(path)
    try:
        with path.open(encoding=encoding, newline="") as file:
            delimiter = _delimiter([file.readline(_SAMPLED_CHARS) for _ in range(_SAMPLED_LINES)])
        with path.open(encoding=encoding, newline="") as file:
            return Grid(path.stem, _rows(path, file, delimiter))
    except csv.Error as error:
        raise unreadable(path, "it must be delimited text", str(error), "Save it anew as XLSX") from None
    except UnicodeError:
        raise unreadable(path, "its text must be whole", f"damaged {encoding}", "Save it anew as UTF-8") from None


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(4)
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ENCODINGS:
        if _is_correct(path, encoding):
            return encoding
    rule = "its text must be UTF-8, UTF-16 with a byte order mark, or GB18030"
    raise unreadable(path, rule, "bytes that are neither", "Save it anew as UTF-8")


def _is_correct(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter that most lines have, and of those the one they have most of."""
    return max(DELIMITERS, key=lambda one: (sum(one in line for line in lines), sum(line.count(one) for line in lines)))


class _Budget:
    """What is left of the row that is being read."""

    def __init__(self) -> None:
        self.chars, self.lines = 0, 0


def _bounded(path: Path, file: TextIO, budget: _Budget) -> Iterator[str]:
    """Yield lines. Raises UnreadableFileError where a row would not end."""
    while line := file.readline(MAX_ROW_CHARS + 1):
        budget.chars += len(line)
        budget.lines += 1
        if budget.chars > MAX_ROW_CHARS or budget.lines > MAX_ROW_LINES:
            most = f"a row must have at most {MAX_ROW_CHARS:,} characters and {MAX_ROW_LINES:,} lines"
            raise unreadable(path, most, "more", "Close its quotes, or save it anew as XLSX")
        yield line


def _rows(path: Path, file: TextIO, delimiter: str) -> Rows:
    budget = _Budget()
    rows: Rows = []
    cells = 0
    for row in csv.reader(_bounded(path, file, budget), delimiter=delimiter):
        budget.chars = budget.lines = 0
        cells += len(row)
        if len(rows) >= limits.MAX_ROWS or len(row) > limits.MAX_COLUMNS or cells > limits.MAX_CELLS:
            most = f"{limits.MAX_ROWS:,} rows, {limits.MAX_COLUMNS:,} columns and {limits.MAX_CELLS:,} cells"
            raise unreadable(path, f"it must have at most {most}", f"more in row {len(rows) + 1:,}", "Split it")
        if max(map(len, row), default=0) > MAX_CELL_CHARS:
            most = f"a cell of delimited text must have at most {MAX_CELL_CHARS:,} characters"
            raise unreadable(path, most, f"more in row {len(rows) + 1:,}", "Shorten it, or save it anew as XLSX")
        rows.append([cell if cell.strip() else None for cell in row])
    return rows
