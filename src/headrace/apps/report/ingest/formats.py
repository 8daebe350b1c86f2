"""What a file is: told by its content, and what its name says must agree."""

from __future__ import annotations

from enum import StrEnum
from errno import EISDIR
from pathlib import Path

from headrace.apps.report.ingest.guard import Archive, check_archive
from headrace.apps.report.ingest.guard_ole import check_ole
from headrace.apps.report.ingest.limits import MAX_BYTES, MIB
from headrace.apps.report.ingest.refusing import short, unreadable, unsafe, wrong_type

_HEAD = 4096
_ZIP, _OLE = (b"PK\x03\x04", b"PK\x05\x06"), b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_READ = "Give an .xlsx, .xls, .ods, .csv or JUnit .xml file"


class Kind(StrEnum):
    """A kind of file."""

    XLSX = "xlsx"
    XLS = "xls"
    ODS = "ods"
    CSV = "csv"
    XML = "xml"
    #: Known by its first bytes, and not read.
    HTML = "html"
    PDF = "pdf"
    XLSB = "xlsb"
    ZIP = "zip"
    BINARY = "binary"


#: What the endings of names say. Macros are refused where they are, so .xlsm without any is a workbook as another.
ENDINGS = {
    ".xlsx": Kind.XLSX,
    ".xlsm": Kind.XLSX,
    ".xls": Kind.XLS,
    ".ods": Kind.ODS,
    ".csv": Kind.CSV,
    ".tsv": Kind.CSV,
    ".xml": Kind.XML,
}


def told_kind(path: Path) -> tuple[Kind, int]:
    """Return what a file is, and its size once unpacked. Raises UnsafeFileError, UnreadableFileError, FileTypeError."""
    size, head = _head(path)
    if size > MAX_BYTES:
        raise unsafe(path, f"a file must have at most {MAX_BYTES // MIB} MiB", f"{size / MIB:.1f} MiB", "Split it")
    archive = None
    if head.startswith(_ZIP):
        archive = check_archive(path)
        kind = _archive_kind(archive)
    elif head.startswith(_OLE):
        check_ole(path)
        kind = Kind.XLS
    else:
        kind = _text_kind(head)
    _check_ending(path, kind)
    return kind, archive.unpacked if archive else size


def _head(path: Path) -> tuple[int, bytes]:
    try:
        if path.exists() and not path.is_file():
            raise OSError(EISDIR, "no file")
        with path.open("rb") as file:
            head = file.read(_HEAD)
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(path, "it must be a file that can be opened", error.strerror, _READ) from None
    if not head:
        raise unreadable(path, "a file must have content", "0 bytes", _READ)
    return size, head


def _archive_kind(archive: Archive) -> Kind:
    if "xl/workbook.xml" in archive.names:
        return Kind.XLSX
    if "xl/workbook.bin" in archive.names:
        return Kind.XLSB
    if "content.xml" in archive.names and archive.mimetype.startswith(b"application/vnd.oasis.opendocument.spread"):
        return Kind.ODS
    return Kind.ZIP


def _text_kind(head: bytes) -> Kind:
    """Return the kind of what is no container."""
    if head.startswith(b"%PDF-"):
        return Kind.PDF
    coded = next((name for bom, name in _BOMS.items() if head.startswith(bom)), "latin-1")
    if coded == "latin-1" and b"\0" in head:
        return Kind.BINARY
    text = head.decode(coded, "ignore").lstrip().lower()
    if text.startswith(("<!doctype html", "<html")):
        return Kind.HTML
    return Kind.XML if text[:1] == "<" and (text[1:2].isalpha() or text[1:2] in "?!") else Kind.CSV


def _check_ending(path: Path, kind: Kind) -> None:
    """Refuse a name that says another kind than the content, and kinds that are not read."""
    ending = path.suffix.lower()
    said = ENDINGS.get(ending)
    if said is None:
        raise wrong_type(path, "its ending must tell a kind that is read", short(ending) or "none", _READ)
    if said is not kind:
        fix = f"Name it .{kind}, or save it anew as .{said}" if kind in ENDINGS.values() else _READ
        raise wrong_type(path, f"its ending says {said}", f"content of the kind {kind}", fix)
