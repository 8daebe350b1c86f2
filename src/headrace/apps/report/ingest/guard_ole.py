"""Looks at an OLE container (xls, and encrypted workbooks of any kind) before anything parses it."""

from __future__ import annotations

from pathlib import Path

from headrace.apps.report.ingest.refusing import unreadable, unsafe

#: Names of streams stand in the directory of the container, in UTF-16.
_ENCRYPTED = tuple(name.encode("utf-16-le") for name in ("EncryptedPackage", "EncryptionInfo"))
_MACROS = tuple(name.encode("utf-16-le") for name in ("_VBA_PROJECT", "_VBA_PROJECT_CUR"))
_BOOK = tuple(f"{name}\0".encode("utf-16-le") for name in ("Workbook", "Book"))
#: Of the header alone.
_LEAST = 512
_BLOCK, _OVERLAP = 1024 * 1024, 64


def check_ole(path: Path) -> None:
    """Raise UnsafeFileError for an encrypted workbook or one with macros, UnreadableFileError for what is none."""
    found: set[bytes] = set()
    size, tail = 0, b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            window = tail + block
            found.update(name for name in (*_ENCRYPTED, *_MACROS, *_BOOK) if name in window)
            tail = window[-_OVERLAP:]
            size += len(block)
    if found.intersection(_ENCRYPTED):
        raise unsafe(path, "it must not be encrypted", "an encrypted workbook", "Save it without a password")
    if found.intersection(_MACROS):
        raise unsafe(path, "it must have no macros", "a VBA project", "Save it as XLSX, which has none")
    if size < _LEAST or not found.intersection(_BOOK):
        raise unreadable(path, "it must hold a whole workbook", f"{size:,} bytes without one", "Save it anew as XLSX")
