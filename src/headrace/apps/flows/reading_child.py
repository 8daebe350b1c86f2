"""Reads one file in a process of its own: on stdin a line of JSON that says how, then the file; on stdout JSON.

{"format": "pdf" or "sheet", …} gives {"pages": […]}, {"rows": […]} or {"error": …}. Both libraries are native: what a
file makes them ask for, or do for ever, ends the process they are in. So that is this one, which has only so much
memory and time. Nothing else of the package is imported.
"""

from __future__ import annotations

import io
import json
import math
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

MAX_CELLS, MAX_ROWS, MAX_COLUMNS = 2_000_000, 200_000, 4_000
#: Characters of all cells of a sheet.
MAX_SHEET = 50_000_000
#: Address space by format: a sheet is laid out whole; a character of a page takes about 300 bytes.
MEMORY = {"pdf": 1024**3, "sheet": 2 * 1024**3}
CPU_SECONDS = 60
#: Beyond this a number of JSON is no longer exact.
_EXACT = 2**53


def main() -> None:
    """Read stdin, write stdout."""
    how = json.loads(sys.stdin.buffer.readline())
    _bound(resource.RLIMIT_AS, MEMORY[how["format"]])
    _bound(resource.RLIMIT_CPU, CPU_SECONDS)
    _bound(resource.RLIMIT_CORE, 0)
    sys.path.append(how["library"])
    read = _pdf if how["format"] == "pdf" else _sheet
    try:
        answer = json.dumps(read(sys.stdin.buffer.read(), how))
    except MemoryError:
        answer = json.dumps({"error": "the file needs more memory than there is for one: split it"})
    sys.stdout.write(answer)


def _bound(kind: int, most: int) -> None:
    """Set a limit of this process, or keep a stricter one; where a system has none of the kind, there is none."""
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most))


def _pdf(data: bytes, how: Mapping[str, Any]) -> dict[str, Any]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data, password=how["password"])
    except pypdfium2.PdfiumError as error:
        return {"error": _why(error, how["password"])}
    try:
        return _pages(document, how)
    except pypdfium2.PdfiumError as error:
        return {"error": f"a page of the PDF cannot be read: {error}"}


def _why(error: Any, password: str | None) -> str:
    from pypdfium2 import raw

    if error.err_code != raw.FPDF_ERR_PASSWORD:
        return f"the file is no whole PDF ({error}): fetch it again"
    return f"the PDF is encrypted: {'the password is wrong' if password else 'set options.password'}"


def _pages(document: Any, how: Mapping[str, Any]) -> dict[str, Any]:
    most, chars = how["most_pages"], how["most_chars"]
    count = len(document) if how["wanted"] is None else min(len(document), how["wanted"])
    if count > most:
        return {"error": f"the PDF has {count:,} pages, more than {most:,}: set options.maxPages"}
    pages: list[str] = []
    left = chars
    for number in range(count):
        page = document[number]
        words = page.get_textpage()
        # Before the text is taken, which is as large again.
        left -= words.count_chars()
        if left < 0:
            return {"error": f"the PDF has more than {chars:,} characters: set options.maxPages"}
        pages.append(_plain(str(words.get_text_range())))
        words.close()
        page.close()
    return {"pages": pages}


def _plain(found: str) -> str:
    """Return text of a page without what is no JSON: characters that a font does not name, halves of a character."""
    return found.replace("\0", "").replace("\r\n", "\n").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sheet(data: bytes, how: Mapping[str, Any]) -> dict[str, Any]:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        return _rows(CalamineWorkbook.from_filelike(io.BytesIO(data)), how["name"])
    except PasswordError:
        return {"error": "the workbook is encrypted: save it without a password"}
    except (CalamineError, OSError, ValueError) as error:
        return {"error": f"the workbook cannot be read: {error}; save it again as XLSX"}


def _rows(book: Any, name: str | None) -> dict[str, Any]:
    names = book.sheet_names
    if not names or (name is not None and name not in names):
        return {"error": f"the workbook has no sheet {name!r}; it has: {', '.join(names) or 'none'}"}
    sheet = book.get_sheet_by_name(names[0] if name is None else name)
    # With what is empty above and before the first cell: rows and columns keep their places.
    height, width = (last + 1 for last in sheet.end or (-1, -1))
    if height > MAX_ROWS or width > MAX_COLUMNS or height * width > MAX_CELLS:
        size = f"{height:,} rows and {width:,} columns"
        return {
            "error": f"the sheet has {size}; read are at most {MAX_ROWS:,} rows, {MAX_COLUMNS:,} columns and "
            f"{MAX_CELLS:,} cells: split it"
        }
    rows = [[cell_of(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)] if height else []
    # A text that many cells share is in the file once, and in the answer as often as it is shown.
    if sum(len(cell) for row in rows for cell in row if isinstance(cell, str)) > MAX_SHEET:
        return {"error": f"the sheet has more than {MAX_SHEET:,} characters: split it"}
    return {"rows": rows}


def cell_of(value: Any) -> Any:
    """Return a cell as JSON: text, number, truth value, ISO date or time; None for an empty one.

    >>> cell_of(2.0), cell_of(" "), cell_of(date(2026, 3, 5))
    (2, None, '2026-03-05')
    """
    if isinstance(value, str):
        return value.replace("\0", "") if value.strip() else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    return value


if __name__ == "__main__":
    main()
