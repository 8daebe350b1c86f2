"""Reads one sheet in a process of its own: workbook on stdin, {"rows": […]} or {"error": …} on stdout.

The library lays a sheet out by its furthest cells: two cells can ask for more memory than there is, and a native
library then ends its process. So that is this one, which has only so much. Nothing else of the package is imported.
"""

from __future__ import annotations

import io
import json
import math
import resource
import sys
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

MAX_CELLS, MAX_ROWS, MAX_COLUMNS = 2_000_000, 200_000, 4_000
MEMORY, CPU_SECONDS = 2 * 1024**3, 60
#: Beyond this a number of JSON is no longer exact.
_EXACT = 2**53


def main() -> None:
    """Read stdin, write stdout."""
    _bound(resource.RLIMIT_AS, MEMORY)
    _bound(resource.RLIMIT_CPU, CPU_SECONDS)
    _bound(resource.RLIMIT_CORE, 0)
    name = json.loads(sys.argv[1])
    json.dump(_answer(sys.stdin.buffer.read(), name), sys.stdout, ensure_ascii=True)


def _bound(kind: int, most: int) -> None:
    """Set a limit of this process, or keep a stricter one; where a system has none of the kind, there is none."""
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most))


def _answer(data: bytes, name: str | None) -> dict[str, Any]:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        return _rows(CalamineWorkbook.from_filelike(io.BytesIO(data)), name)
    except MemoryError:
        return {"error": "the sheet needs more memory than there is for one: split it"}
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
    rows = sheet.to_python(skip_empty_area=False) if height else []
    return {"rows": [[cell_of(cell) for cell in row] for row in rows]}


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
