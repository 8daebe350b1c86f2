"""Readers of PDF files and sheets: the extra `headrace[flows]`. Files are read by processes of their own, which end.

One has 60 s of a processor, `TIMEOUT` seconds in all, and address space of 1 GiB for a PDF and 2 GiB for a sheet (see
`reading_child`); there are `AT_ONCE` of them at once. What a file does to its reader is an error of that file alone.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from headrace.apps.flows import reading_child
from headrace.nodes.base import NodeError

MAX_BYTES = 50 * 1024 * 1024
MAX_PAGES, MAX_CHARS = 2_000, 10_000_000
#: Seconds for one file, and files that are read at once.
TIMEOUT, AT_ONCE = 120.0, 4
#: Of a workbook, which is a zip archive: its parts, their size once unpacked, and how much smaller it may be packed.
MAX_PARTS, MAX_UNPACKED, MAX_RATIO = 2_000, 256 * 1024 * 1024, 200
#: Below this size a part may be packed however well: empty sheets are.
_SMALL = 1024 * 1024
_LONGEST_NAME = 1_000
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
#: By its path and isolated: it imports a library alone, and starts in a twentieth of a second.
_CHILD = reading_child.__file__
#: By event loop, as these are of one.
_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class FileReaders:
    """The `Readers` of `nodes/services.py`."""

    async def pdf(self, data: bytes, *, password: str | None, max_pages: int | None) -> list[str]:
        """Return the text of each page, of the first `max_pages` at most. Raises NodeError."""
        _check_size(data)
        library = _library("pypdfium2", "pypdfium2")
        if b"%PDF-" not in data[:1024]:
            raise NodeError("the file is no PDF: choose the operation of its format")
        how = {"password": password, "wanted": max_pages, "most_pages": MAX_PAGES, "most_chars": MAX_CHARS}
        answer = await _read(data, {"format": "pdf", "library": library, **how})
        pages: list[str] = answer["pages"]
        return pages

    async def sheet(self, data: bytes, *, name: str | None) -> list[list[Any]]:
        """Return the rows of a sheet, the first unless named: texts, numbers, truth values, ISO dates, None."""
        _check_size(data)
        library = _library("python_calamine", "python-calamine")
        if name is not None and len(name) > _LONGEST_NAME:
            raise NodeError(f"no sheet has a name of more than {_LONGEST_NAME} characters: correct options.sheetName")
        if data.startswith(_ZIP):
            await asyncio.to_thread(_check_archive, data)
        elif not data.startswith(_OLE):
            raise NodeError("the file is no workbook (xlsx, xls or ods): choose the operation of its format")
        answer = await _read(data, {"format": "sheet", "library": library, "name": name})
        rows: list[list[Any]] = answer["rows"]
        return rows


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise NodeError(f"the file is larger than {MAX_BYTES >> 20} MiB: split it")


def _library(module: str, package: str) -> str:
    """Return the folder that a library is in. Raises NodeError where it is not installed."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise NodeError(f"{package} is not installed, which reads such files: pip install 'headrace[flows]'")
    return str(Path(found.origin).parent.parent)


async def _read(data: bytes, how: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a process that reads a file. Raises NodeError."""
    async with _places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
        code, out = await _answered(json.dumps(how).encode() + b"\n" + data)
    if code:
        raise NodeError("the file cannot be read: it asks for too much memory or time, or is damaged; split it")
    answer: dict[str, Any] = await asyncio.to_thread(json.loads, out)
    if "error" in answer:
        raise NodeError(answer["error"])
    return answer


async def _answered(given: bytes) -> tuple[int | None, bytes]:
    """Return how a process ended and what it wrote; one that is not waited for any longer is ended."""
    pipe, no_pipe = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    child = await asyncio.create_subprocess_exec(sys.executable, "-I", _CHILD, stdin=pipe, stdout=pipe, stderr=no_pipe)
    try:
        async with asyncio.timeout(TIMEOUT):
            out, _ = await child.communicate(given)
    except TimeoutError:
        raise NodeError(f"the file took longer than {TIMEOUT:g} s to read: split it") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return child.returncode, out


def _check_archive(data: bytes) -> None:
    """Refuse an archive that would be much more unpacked than it says, or more than we have room for."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            if len(parts) > MAX_PARTS:
                raise NodeError(f"the workbook has more than {MAX_PARTS:,} parts: that is none")
            # Of other kinds a block comes unpacked as a whole, however large; no program that makes sheets uses them.
            if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
                raise NodeError("the workbook is packed as none is: save it again as XLSX")
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
