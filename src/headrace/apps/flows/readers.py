"""Readers of PDF files and sheets: the extra `headrace[flows]`. Nothing is imported before the first file is read."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
import zipfile
from importlib.util import find_spec
from typing import Any

from headrace.apps.flows import sheet_child
from headrace.nodes.base import NodeError

MAX_BYTES = 50 * 1024 * 1024
MAX_PAGES, MAX_CHARS = 2_000, 10_000_000
#: Seconds for one workbook.
TIMEOUT = 120
#: Of a workbook, which is a zip archive: its parts, their size once unpacked, and how much smaller it may be packed.
MAX_PARTS, MAX_UNPACKED, MAX_RATIO = 2_000, 256 * 1024 * 1024, 200
#: Below this size a part may be packed however well: empty sheets are.
_SMALL = 1024 * 1024
_LONGEST_NAME = 1_000
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"

# pdfium keeps global state and is not thread-safe: one reader at a time in this process.
_PDFIUM = threading.Lock()


class FileReaders:
    """The `Readers` of `nodes/services.py`."""

    async def pdf(self, data: bytes, *, password: str | None, max_pages: int | None) -> list[str]:
        """Return the text of each page, of the first `max_pages` at most. Raises NodeError."""
        _check_size(data)
        return await asyncio.to_thread(_pdf, data, password, max_pages)

    async def sheet(self, data: bytes, *, name: str | None) -> list[list[Any]]:
        """Return the rows of a sheet, the first unless named: texts, numbers, truth values, ISO dates, None."""
        _check_size(data)
        return await asyncio.to_thread(_sheet, data, name)


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise NodeError(f"the file is larger than {MAX_BYTES >> 20} MiB: split it")


def _missing(library: str) -> NodeError:
    return NodeError(f"{library} is not installed, which reads such files: pip install 'headrace[flows]'")


def _pdf(data: bytes, password: str | None, max_pages: int | None) -> list[str]:
    try:
        import pypdfium2
    except ImportError:
        raise _missing("pypdfium2") from None
    if b"%PDF-" not in data[:1024]:
        raise NodeError("the file is no PDF: choose the operation of its format")
    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(data, password=password)
        except pypdfium2.PdfiumError as error:
            raise NodeError(_why(error, password)) from None
        try:
            return _pages(document, max_pages)
        except pypdfium2.PdfiumError as error:
            raise NodeError(f"a page of the PDF cannot be read: {error}") from None
        finally:
            document.close()


def _why(error: Any, password: str | None) -> str:
    from pypdfium2 import raw

    if error.err_code != raw.FPDF_ERR_PASSWORD:
        return f"the file is no whole PDF ({error}): fetch it again"
    return f"the PDF is encrypted: {'the password is wrong' if password else 'set options.password'}"


def _pages(document: Any, max_pages: int | None) -> list[str]:
    count = len(document) if max_pages is None else min(len(document), max_pages)
    if count > MAX_PAGES:
        raise NodeError(f"the PDF has {count:,} pages, more than {MAX_PAGES:,}: set options.maxPages")
    pages: list[str] = []
    left = MAX_CHARS
    for number in range(count):
        text = _text(document[number])
        left -= len(text)
        if left < 0:
            raise NodeError(f"the PDF has more than {MAX_CHARS:,} characters: set options.maxPages")
        pages.append(text)
    return pages


def _text(page: Any) -> str:
    words = page.get_textpage()
    try:
        found = str(words.get_text_range())
    finally:
        words.close()
        page.close()
    # Neither is JSON: characters that a font does not name, and halves of a character.
    return found.replace("\0", "").replace("\r\n", "\n").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sheet(data: bytes, name: str | None) -> list[list[Any]]:
    if find_spec("python_calamine") is None:
        raise _missing("python-calamine")
    if data.startswith(_ZIP):
        _check_archive(data)
    elif not data.startswith(_OLE):
        raise NodeError("the file is no workbook (xlsx, xls or ods): choose the operation of its format")
    if name is not None and len(name) > _LONGEST_NAME:
        raise NodeError(f"no sheet has a name of more than {_LONGEST_NAME} characters: correct options.sheetName")
    # By its path and isolated: it imports the library alone, and starts in a twentieth of a second.
    command = [sys.executable, "-I", sheet_child.__file__, json.dumps(name)]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command, input=data, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise NodeError(f"the workbook took longer than {TIMEOUT} s to read: split it") from None
    if done.returncode:
        raise NodeError("the workbook cannot be read: it asks for too much memory or time, or is damaged; split it")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise NodeError(answer["error"])
    rows: list[list[Any]] = answer["rows"]
    return rows


def _check_archive(data: bytes) -> None:
    """Refuse an archive that would be much more unpacked than it says, or more than we have room for."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            if len(parts) > MAX_PARTS:
                raise NodeError(f"the workbook has more than {MAX_PARTS:,} parts: that is none")
            whole = 0
            for part in parts:
                whole += _unpacked(archive, part, MAX_UNPACKED - whole)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise NodeError(f"the workbook is damaged or encrypted ({error}): save it again without a password") from None


def _unpacked(archive: zipfile.ZipFile, part: zipfile.ZipInfo, room: int) -> int:
    """Return the true size of a part: what the archive says of it may be a lie."""
    size = 0
    with archive.open(part) as file:
        while block := file.read(1 << 16):
            size += len(block)
            if size > room:
                raise NodeError(f"the workbook is larger than {MAX_UNPACKED >> 20} MiB once unpacked: split it")
            if size > _SMALL and size > MAX_RATIO * max(part.compress_size, 1):
                raise NodeError(
                    f"a part of the workbook is packed to less than 1/{MAX_RATIO} of its size: that is none"
                )
    return size
