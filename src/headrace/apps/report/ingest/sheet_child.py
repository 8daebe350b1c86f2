"""Reads a workbook in a process of its own: on stdin a line of JSON that says how, on stdout lines of JSON.

The first line lists the sheets. For each that is read follow a line about it and one for each of its rows; `{"end":
true}` is the last. `{"error": …}` may stand in the place of any. The library is native: what a file makes it ask for,
or do for ever, ends the process it is in. So that is this one, which has only so much memory and time. Nothing else of
the package is imported.
"""

from __future__ import annotations

import json
import math
import re
import resource
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree  # the archive was looked at: no part of it has a document type

#: Beyond this a number of JSON is no longer exact.
_EXACT = 2**53
#: What stands in a cell with an error, and in one with a formula.
_MARK = re.compile(rb't="e"|<f[\s>/]')
_CELL = re.compile(rb'<c r="([A-Z]{1,3})(\d{1,7})"([^<>]{0,500})>')
_VALUE = re.compile(rb"<v>([^<]+)</v>")
_RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
#: Cells with errors or without results that are told of each sheet.
_MOST_BROKEN = 20_000


def main() -> None:
    """Read stdin, write stdout."""
    how = json.loads(sys.stdin.readline())
    _bound(resource.RLIMIT_AS, how["memory"])
    _bound(resource.RLIMIT_CPU, how["seconds"])
    _bound(resource.RLIMIT_CORE, 0)
    sys.path.append(how["library"])
    try:
        for line in _lines(how):
            sys.stdout.write(json.dumps(line) + "\n")
    except MemoryError:
        sys.stdout.write(json.dumps({"error": "memory"}) + "\n")


def _bound(kind: int, most: int) -> None:
    """Set a limit of this process, or keep a stricter one; where a system has none of the kind, there is none."""
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most))


def _lines(how: Mapping[str, Any]) -> Iterator[Any]:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

    try:
        # By its path, whose ending was looked at: of a file without a name every format would be tried in turn, and the
        # error be of none of them.
        book = CalamineWorkbook.from_path(how["path"])
        tables = [one for one in book.sheets_metadata if one.typ is SheetTypeEnum.WorkSheet]
        listed = {one.name: one.visible is not SheetVisibleEnum.Visible for one in tables}
        yield {"sheets": listed}
        wanted = how["sheets"] or [name for name, hidden in listed.items() if not hidden]
        yield from _sheets(book, [name for name in wanted if name in listed], how)
    except PasswordError:
        yield {"error": "password"}
    except (CalamineError, OSError, ValueError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        yield {"error": "damaged", "why": str(error)}


def _sheets(book: Any, names: list[str], how: Mapping[str, Any]) -> Iterator[Any]:
    parts = _parts(how["path"]) if how["kind"] == "xlsx" and names else {}
    cells, chars = how["max_cells"], how["max_chars"]
    for name in names:
        sheet = book.get_sheet_by_name(name)
        # With what is empty above and before the first cell: rows and columns keep their places.
        height, width = (last + 1 for last in sheet.end or (-1, -1))
        cells -= height * width
        if height > how["max_rows"] or width > how["max_columns"] or cells < 0:
            yield {"error": "large", "sheet": name, "height": height, "width": width}
            return
        merges = sheet.merged_cell_ranges
        if merges and len(merges) > how["max_merges"]:
            yield {"error": "merges", "sheet": name, "count": len(merges)}
            return
        broken = _broken(how["path"], parts[name]) if name in parts else []
        yield {"sheet": name, "merges": merges and [[*one, *other] for one, other in merges], "broken": broken}
        for row in sheet.iter_rows() if height else ():
            chars -= sum(len(cell) for cell in row if isinstance(cell, str))
            if chars < 0:
                yield {"error": "chars", "sheet": name}
                return
            yield [cell_of(cell) for cell in row]
    yield {"end": True}


def cell_of(value: Any) -> Any:
    """Return a cell as JSON. Dates and durations, which JSON has not, are objects of one member.

    >>> cell_of(2.0), cell_of(" "), cell_of(date(2026, 3, 5)), cell_of(time(0, 1, 30))
    (2, None, {'date': '2026-03-05'}, {'seconds': 90.0})
    """
    if isinstance(value, str):
        return value.replace("\0", "") if value.strip() else None
    if isinstance(value, datetime | date):
        return {"date": value.isoformat()}
    if isinstance(value, time):
        whole = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
        return {"seconds": whole.total_seconds()}
    if isinstance(value, timedelta):
        return {"seconds": value.total_seconds()}
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    return value


def _parts(path: str) -> dict[str, str]:
    """Return the part of each sheet: the library does not tell which cells have errors, so its XML is looked at."""
    with zipfile.ZipFile(path) as archive:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))  # noqa: S314 (see the import)
        relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
        targets = {one.get("Id"): one.get("Target", "") for one in relations}
        found = {}
        for sheet in book.iter():
            target = targets.get(sheet.get(_RELATIONS)) if sheet.tag.endswith("}sheet") else None
            part = target and (target.lstrip("/") if target.startswith("/") else f"xl/{target}")
            if part in archive.namelist():
                found[sheet.get("name", "")] = part
        return found


def _broken(path: str, part: str) -> list[list[Any]]:
    """Return row, column and error of the cells that have no result; the error is empty where none was stored."""
    with zipfile.ZipFile(path) as archive:
        content = archive.read(part)
    found: list[list[Any]] = []
    done = 0
    for mark in _MARK.finditer(content):
        start = content.rfind(b"<c ", done, mark.start())
        if start < 0:
            continue
        # To where the next cell begins: however the part is damaged, no byte is looked at many times.
        end = content.find(b"<c ", mark.end())
        done = end if end >= 0 else len(content)
        cell = _CELL.match(content, start, done)
        what = _what_is_broken(cell[3], content[cell.end() : done]) if cell else None
        if cell and what is not None:
            found.append([int(cell[2]) - 1, _column(cell[1]), what])
        if len(found) >= _MOST_BROKEN:
            break
    return found


def _what_is_broken(attributes: bytes, inner: bytes) -> str | None:
    value = _VALUE.search(inner)
    if b't="e"' in attributes:
        return value[1].decode("utf-8", "replace") if value else "#ERROR"
    # A formula may well give an empty text, and then says that it is a text.
    return "" if b"<f" in inner and value is None and b't="str"' not in attributes else None


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number - 1


if __name__ == "__main__":
    main()
