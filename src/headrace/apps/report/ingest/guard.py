"""Looks at an archive (xlsx, ods) before anything parses it: its list of entries, then each entry as it is unpacked.

What the list says of sizes may be a lie, so the true ones are counted. No more than a block is held at a time.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from headrace.apps.report.ingest import guard_parts, limits
from headrace.apps.report.ingest.limits import MIB
from headrace.apps.report.ingest.refusing import short, unreadable, unsafe

_BLOCK = 256 * 1024
#: What each entry of the list begins with.
_LISTED = b"PK\x01\x02"
_DRIVE = re.compile(r"^[A-Za-z]:")
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ANEW = "Save it anew as XLSX"
#: Parts that hold macros, by format.
_MACROS = re.compile(r"(^|/)vbaproject\w*\.bin$|^basic/|^scripts/|^xl/macrosheets/", re.IGNORECASE)
_DAMAGED = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error, ValueError)


@dataclass(frozen=True)
class Archive:
    """What is known of an archive once it was looked at."""

    names: frozenset[str]
    unpacked: int
    #: The first entry of OpenDocument files says what they are.
    mimetype: bytes = b""


def check_archive(path: Path) -> Archive:
    """Return what an archive is. Raises UnsafeFileError for what could do harm, UnreadableFileError for damage."""
    _check_listed(path)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_entries(path, entries)
            return Archive(
                names=frozenset(entry.filename for entry in entries),
                unpacked=_check_contents(path, archive),
                mimetype=archive.read("mimetype")[:100] if "mimetype" in archive.namelist() else b"",
            )
    except _DAMAGED as error:
        raise unreadable(path, "the archive must be whole", short(str(error)) or "damage", _ANEW) from None


def _check_listed(path: Path) -> None:
    """Count entries before a list of millions of them is laid out."""
    count, tail = 0, b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            window = tail + block
            count += window.count(_LISTED)
            tail = window[-len(_LISTED) + 1 :]
    if count > limits.MAX_ENTRIES:
        raise unsafe(path, f"an archive must have at most {limits.MAX_ENTRIES:,} entries", f"{count:,}", _ANEW)


def _check_entries(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    for entry in entries:
        name = entry.orig_filename
        parts = name.replace("\\", "/").split("/")
        if name.startswith(("/", "\\")) or _DRIVE.match(name) or ".." in parts or "\0" in name:
            raise unsafe(path, "entries must stay within the archive", repr(short(name)), _ANEW)
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise unsafe(path, "no entry may be a symbolic link", repr(short(name)), _ANEW)
        if entry.flag_bits & 1:
            raise unsafe(path, "it must not be encrypted", repr(short(name)), "Save it without a password")
        if entry.compress_type not in _KINDS:
            raise unsafe(path, "entries must be stored or deflated", f"kind {entry.compress_type}", _ANEW)
        if _MACROS.search(name):
            raise unsafe(path, "it must have no macros", repr(short(name)), "Save it as XLSX, which has none")
        if "/externallinks/" in f"/{name.lower()}":
            raise unsafe(path, "it must not link to other files", repr(short(name)), guard_parts.UNLINK)
    _check_said(path, entries)


def _check_said(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse what says itself that it is too large: nothing has to be unpacked for it."""
    whole = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    _check_size(path, whole)
    _check_ratio(path, whole, packed)


def _check_size(path: Path, size: int) -> None:
    if size > limits.MAX_UNPACKED:
        most = f"unpacked it must have at most {limits.MAX_UNPACKED // MIB} MiB"
        raise unsafe(path, most, f"{size / MIB:,.0f} MiB or more", "Split it")


def _check_ratio(path: Path, size: int, packed: int) -> None:
    if size > limits.SMALL_PART and size > limits.MAX_RATIO * max(packed, 1):
        rule = f"it must be packed to no less than 1/{limits.MAX_RATIO} of its size"
        raise unsafe(path, rule, f"1/{size // max(packed, 1):,}", _ANEW)


def _check_contents(path: Path, archive: zipfile.ZipFile) -> int:
    """Unpack every entry once and look at it; return their true size."""
    whole = 0
    for entry in archive.infolist():
        look = guard_parts.Look(path, entry.filename)
        size = 0
        with archive.open(entry) as file:
            while block := file.read(_BLOCK):
                size += len(block)
                _check_size(path, whole + size)
                _check_ratio(path, size, entry.compress_size)
                look.at(block)
        look.end()
        whole += size
    return whole
