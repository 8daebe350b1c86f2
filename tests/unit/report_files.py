"""Files of test cases for tests: ordinary ones of every kind, and pieces that hostile ones are made of."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xlsxwriter

HEADER = ["Case ID", "Title", "Module", "Status"]
ROWS = [HEADER, ["TC-1", "Log in", "Login", "Pass"], ["TC-2", "Log out", "Login", "Fail"]]
SHEET = "xl/worksheets/sheet1.xml"
Table = Sequence[Sequence[Any]]


def xlsx(
    path: Path, rows: Table = ROWS, *, merges: Sequence[tuple[int, int, int, int]] = (), name: str = "Cases"
) -> Path:
    """Write a workbook of one sheet; merged ranges are (first row, first column, last row, last column)."""
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as book:
        sheet = book.add_worksheet(name)
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
        for first, left, last, right in merges:
            sheet.merge_range(first, left, last, right, rows[first][left])
    return path


def changed(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """Change one part of an archive."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert part in parts
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, change(content) if name == part else content)
    return path


def with_entry(path: Path, entry: str | zipfile.ZipInfo, content: bytes) -> Path:
    """Add an entry to an archive."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(entry, content)
    return path


ODS_CONTENT = """<?xml version="1.0" encoding="UTF-8"?><office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet
><table:table table:name="Cases">{rows}</table:table></office:spreadsheet
></office:body></office:document-content>"""


def ods(path: Path, rows: Table = ROWS, *, extra: str = "", manifest: str = "<manifest/>") -> Path:
    """Write an OpenDocument sheet."""
    inner = "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", ODS_CONTENT.format(rows=inner + extra))
    return path


def _ods_cell(value: object) -> str:
    if value is None:
        return "<table:table-cell/>"
    return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'


def xls(path: Path, rows: Table = ROWS, *, streams: Sequence[str] = ("Workbook",)) -> Path:
    """Write a workbook of Excel 97: records of BIFF8 in an OLE container."""
    path.write_bytes(ole(biff(rows), streams))
    return path


def biff(rows: Table, *, more: bytes = b"", first: bytes = b"") -> bytes:
    """Return the records of a workbook with one sheet; `first` of them stand before all, `more` before its cells."""
    name = b"Cases"
    book = _record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0005, 0, 0, 0, 0)) + first
    length = len(book) + 4 + 8 + len(name) + 4
    book += _record(0x0085, struct.pack("<IBBBB", length, 0, 0, len(name), 0) + name) + _record(0x000A, b"")
    sheet = _record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0010, 0, 0, 0, 0)) + more
    for number, row in enumerate(rows):
        for column, value in enumerate(row):
            sheet += _biff_cell(number, column, value)
    return book + sheet + _record(0x000A, b"")


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _biff_cell(row: int, column: int, value: object) -> bytes:
    place = struct.pack("<HHH", row, column, 0)
    if isinstance(value, int | float):
        return _record(0x0203, place + struct.pack("<d", value))
    text = str(value)
    return _record(0x0204, place + struct.pack("<HB", len(text), 1) + text.encode("utf-16-le"))


def ole(content: bytes, names: Sequence[str] = ("Workbook",)) -> bytes:
    """Return an OLE container; the first of its streams has the content, the others are empty."""
    content = content.ljust(4096, b"\0")  # shorter streams would lie elsewhere
    count = -(-len(content) // 512)
    chain = [0xFFFFFFFD, 0xFFFFFFFE, *(number + 3 for number in range(count - 1)), 0xFFFFFFFE]
    assert len(chain) <= 128
    table = struct.pack("<128I", *chain, *[0xFFFFFFFF] * (128 - len(chain)))
    first = struct.pack("<8s16xHHHHH6xIIIIIIIII", *_OLE_HEAD, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header = first + struct.pack("<109I", 0, *[0xFFFFFFFF] * 108)
    entries = [_entry("Root Entry", 5, 1, 0xFFFFFFFE, 0)]
    for number, name in enumerate(names):
        entries.append(_entry(name, 2, None, 2 if number == 0 else 0xFFFFFFFE, len(content) if number == 0 else 0))
    directory = b"".join(entries).ljust(512, b"\0")[:512]
    return header + table + directory + content.ljust(count * 512, b"\0")


_OLE_HEAD = (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096)


def _entry(name: str, kind: int, child: int | None, start: int, size: int) -> bytes:
    coded = name.encode("utf-16-le")
    none = 0xFFFFFFFF
    links = struct.pack("<III", none, none, none if child is None else child)
    return struct.pack("<64sHBB", coded, len(coded) + 2, kind, 1) + links + b"\0" * 36 + struct.pack("<IQ", start, size)


def zipped(**parts: bytes) -> bytes:
    """Return an archive of parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()
