"""Readers of flows: what is in PDF files and sheets, and that a hostile file costs no more than an error."""

from __future__ import annotations

import asyncio
import io
import os
import random
import resource
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from headrace.apps.flows import readers, reading_child
from headrace.apps.flows.readers import FileReaders
from headrace.nodes.base import NodeError
from tests.unit.papers_files import pdf_of
from tests.waiting import wait_until

SHEET = "xl/worksheets/sheet1.xml"
PAGES = pdf_of([["Rain fell.", "It was cold."], ["The sun came."]])
ROWS: list[list[Any]] = [
    ["name", "count", "seen"],
    ["Ada", 3, datetime(2026, 3, 5, 12, 30)],
    [None, 2.5, date(2026, 3, 6)],
    ["=1+1", True, " "],
]


def workbook(rows: list[list[Any]] = ROWS, name: str = "First") -> bytes:
    """Return a workbook with these rows, and an empty sheet beside."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = name
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(row, 1):
            cell = sheet.cell(number, column, value)
            if isinstance(value, str):
                cell.data_type = "s"
    book.create_sheet("Empty")
    return saved(book)


def saved(book: openpyxl.Workbook) -> bytes:
    """Return a workbook's file."""
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_part(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return a workbook with one of its parts changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            content = old.read(part)
            new.writestr(part, change(content) if part == name else content)
    return out.getvalue()


async def sheet(data: bytes, name: str | None = None) -> list[list[Any]]:
    """Read a sheet."""
    return await FileReaders().sheet(data, name=name)


async def pdf(data: bytes, password: str | None = None, most: int | None = None) -> list[str]:
    """Read a PDF."""
    return await FileReaders().pdf(data, password=password, max_pages=most)


async def test_a_sheet_is_read_as_plain_data() -> None:
    """Texts stay texts, whole numbers are whole, dates are ISO texts, and what is blank is None."""
    assert await sheet(workbook()) == [
        ["name", "count", "seen"],
        ["Ada", 3, "2026-03-05T12:30:00"],
        [None, 2.5, "2026-03-06"],
        ["=1+1", True, None],
    ]
    assert await sheet(workbook(name="Täglich"), "Täglich") == await sheet(workbook())
    assert await sheet(workbook(), "Empty") == []


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (workbook(), "Other", "no sheet 'Other'; it has: First, Empty"),
        (workbook(), "x" * 2_000, "correct options.sheetName"),
        (b"a,b\n1,2\n", None, "no workbook"),
        (b"PK\x03\x04 and no more", None, "damaged or encrypted"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 600, None, "cannot be read"),
        (with_part(workbook(), SHEET, lambda part: part[:200]), None, "cannot be read"),
    ],
)
async def test_what_is_no_sheet_is_named(data: bytes, name: str | None, words: str) -> None:
    """Another format, a damaged file or a sheet that is not there: an error that says what to do."""
    with pytest.raises(NodeError, match=words):
        await sheet(data, name)


ODS = """<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
  xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
  xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>
<table:table table:name="One"><table:table-row table:number-rows-repeated="{rows}"><table:table-cell
 office:value-type="string" table:number-columns-repeated="{columns}"><text:p>a</text:p></table:table-cell
></table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"""


def ods(rows: int, columns: int) -> bytes:
    """Return an OpenDocument sheet of one cell that is repeated."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", ODS.format(rows=rows, columns=columns))
    return out.getvalue()


async def test_cells_that_are_said_to_be_repeated() -> None:
    """An OpenDocument sheet is read as any other; one cell that stands for too many of them is refused."""
    assert await sheet(ods(2, 3), "One") == [["a"] * 3] * 2
    with pytest.raises(NodeError, match=r"1 rows and 5,000 columns; read are at most .*: split it"):
        await sheet(ods(1, 5_000))
    with pytest.raises(NodeError, match="cannot be read"):
        await sheet(ods(1_000_000, 16_000))


async def test_a_single_cell_far_away_is_as_large_as_all_before_it() -> None:
    """Rows keep their places, so what is empty before them counts."""
    far = with_part(
        workbook([["a"]]), SHEET, lambda part: part.replace(b'r="1"', b'r="900000"').replace(b"A1", b"A900000")
    )
    with pytest.raises(NodeError, match="900,000 rows and 1 columns"):
        await sheet(far)
    low = with_part(workbook([["a"]]), SHEET, lambda part: part.replace(b'r="1"', b'r="3"').replace(b"A1", b"B3"))
    assert await sheet(low) == [[None, None], [None, None], [None, "a"]]


async def test_two_cells_far_apart_take_no_more_than_a_little_memory() -> None:
    """A sheet that would be laid out as seventeen thousand million cells is refused, and this process goes on."""
    began = time.monotonic()
    far = workbook([["a"], ["b"]])
    far = with_part(far, SHEET, lambda part: part.replace(b'r="2"', b'r="1048576"').replace(b"A2", b"XFD1048576"))
    with pytest.raises(NodeError, match="split it"):
        await sheet(far)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("MAX_UNPACKED", 2_000, "once unpacked"),
        ("MAX_PARTS", 3, "more than 3 parts"),
        ("MAX_BYTES", 100, "is larger than"),
    ],
)
async def test_large_archives_are_refused(limit: str, value: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts, their true sizes and the file's own size are looked at before it is parsed."""
    monkeypatch.setattr(readers, limit, value)
    with pytest.raises(NodeError, match=words):
        await sheet(workbook())


async def test_a_part_that_is_packed_too_well_is_refused() -> None:
    """Megabytes of the same letter are no sheet."""
    bomb = with_part(workbook(), SHEET, lambda part: part + b" " * (8 << 20))
    assert len(bomb) < 100_000
    with pytest.raises(NodeError, match="packed to less than 1/200"):
        await sheet(bomb)


@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
async def test_parts_that_are_packed_as_none_is(kind: int) -> None:
    """Kinds that come unpacked in blocks of any size are refused before one is."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        archive.writestr("xl/workbook.xml", b" " * 1_000)
    with pytest.raises(NodeError, match="packed as none is"):
        await sheet(out.getvalue())


async def test_a_sheet_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a reader never ends with costs its time and no more."""
    monkeypatch.setattr(readers, "TIMEOUT", 0.001)
    with pytest.raises(NodeError, match="took longer"):
        await sheet(workbook())


async def test_texts_that_many_cells_share_are_counted_each_time() -> None:
    """A text is in the file once, and would be in the items as often as it is shown."""
    shared = workbook([["".join(random.Random(1).choices("rainfall ", k=30_000))] * 1_700])
    assert len(shared) < 1_000_000
    with pytest.raises(NodeError, match=r"more than 50,000,000 characters: split it"):
        await sheet(shared)


async def test_the_text_of_each_page_is_read() -> None:
    """One text for each page, of as many pages as are asked for."""
    assert await pdf(PAGES) == ["Rain fell.\nIt was cold.", "The sun came."]
    assert await pdf(PAGES, most=1) == ["Rain fell.\nIt was cold."]
    assert await pdf(PAGES, most=9) == await pdf(PAGES)


async def test_an_encrypted_pdf_needs_its_password() -> None:
    """With it the file is read as any other."""
    locked = pdf_of([["secret"]], password="key")
    assert await pdf(locked, "key") == ["secret"]
    with pytest.raises(NodeError, match=r"set options\.password"):
        await pdf(locked)
    with pytest.raises(NodeError, match="the password is wrong"):
        await pdf(locked, "other")


@pytest.mark.parametrize(
    ("data", "words"), [(b"text", "no PDF"), (b"%PDF-1.7 and no more", "no whole PDF"), (b"", "no PDF")]
)
async def test_what_is_no_pdf_is_named(data: bytes, words: str) -> None:
    """Another format or a damaged file is an error."""
    with pytest.raises(NodeError, match=words):
        await pdf(data)


@pytest.mark.parametrize(("limit", "words"), [("MAX_PAGES", "has 2 pages"), ("MAX_CHARS", "characters")])
async def test_long_pdfs_are_refused(limit: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and characters have a limit; fewer pages may be asked for."""
    monkeypatch.setattr(readers, limit, 1)
    with pytest.raises(NodeError, match=rf"{words}.*set options\.maxPages"):
        await pdf(PAGES)


def page_of(content: bytes) -> bytes:
    """Return a PDF of one page with this content, packed."""
    packed = zlib.compress(content, 9)
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        b"/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    ]
    body, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(body)
    return body + b"xref\n0 5\n0000000000 65535 f \n" + table + end


async def test_a_page_of_millions_of_characters_costs_no_more_than_an_error() -> None:
    """What reads it may have a GiB and ends beyond; this process has hardly more than before."""
    assert await pdf(page_of(b"BT /F 12 Tf 10 10 Td (rain) Tj ET")) == ["rain"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bomb = page_of(b"BT /F 12 Tf 10 10 Td " + b"(aaaaaaaaaa) Tj " * 500_000 + b"ET")
    assert len(bomb) < 20_000
    with pytest.raises(NodeError, match="asks for too much memory or time"):
        await pdf(bomb)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2_300 << 10


@pytest.fixture
def hung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a reader that never ends into the place of ours; return where it writes its number."""
    number = tmp_path / "number"
    script = f"import os, signal\nopen({str(number)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n"
    (tmp_path / "child.py").write_text(script)
    monkeypatch.setattr(readers, "_CHILD", str(tmp_path / "child.py"))
    return number


async def test_a_reader_that_hangs_holds_nothing(hung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended with its time, or with the task that waits for it; no thread waits, and the next file is read."""
    threads = set(threading.enumerate())
    monkeypatch.setattr(readers, "AT_ONCE", 1)
    waiting = asyncio.create_task(pdf(PAGES))
    await wait_until(lambda: hung.exists() and hung.read_text() != "")
    assert not [one for one in set(threading.enumerate()) - threads if one.name.startswith("asyncio_")]
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not runs(int(hung.read_text()))
    monkeypatch.setattr(readers, "TIMEOUT", 0.3)
    with pytest.raises(NodeError, match=r"longer than 0\.3 s to read: split it"):
        await pdf(PAGES)
    assert not runs(int(hung.read_text()))
    monkeypatch.setattr(readers, "_CHILD", reading_child.__file__)
    monkeypatch.setattr(readers, "TIMEOUT", 20)
    assert await pdf(PAGES, most=1) == ["Rain fell.\nIt was cold."]


def runs(number: int) -> bool:
    """Return whether there is a process of this number."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setattr(readers, "find_spec", lambda name: None)
    for reading in (pdf(PAGES), sheet(workbook())):
        with pytest.raises(NodeError, match=r"pip install 'headrace\[flows\]'"):
            await reading
