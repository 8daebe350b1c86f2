"""What must not stand in a part of an archive: archives, document types and entities, links to other files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.apps.report.ingest import limits
from headrace.apps.report.ingest.libraries import safe_xml
from headrace.apps.report.ingest.refusing import short, unreadable, unsafe

UNLINK = "Break its links (Data, Edit links), save it anew and give that file"
_ANEW = "Save it anew as XLSX"
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"Rar!", b"7z\xbc\xaf\x27\x1c")
_DECLARED = ("<!DOCTYPE", "<!ENTITY")
#: In every encoding in which a reader of XML would find them.
_DTD = tuple(word.encode(code) for word in _DECLARED for code in ("ascii", "utf-16-le", "utf-16-be"))
#: Long enough for any of the above to be found across blocks.
_OVERLAP = 64
#: Of OpenDocument sheets: cells and pictures that are fetched from elsewhere, and encryption.
_ODS_LINK = re.compile(
    rb"<table:(?:table-source|cell-range-source)\b|<office:dde-source\b"
    rb'|<draw:(?:image|object)\b[^>]{0,2000}?xlink:href="(?:[a-z][a-z0-9+.-]*:|/|\.\./)',
    re.IGNORECASE,
)
_ODS_OVERLAP = 2_200
#: How a cell begins in the XML of a sheet, whatever prefix its names have.
_CELLS = (b"<c ", b"<c>", b"<c/>", b":c ", b":c>", b":c/>")
_MAX_RELATIONS = 20 * 1024 * 1024


class Look:
    """Looks at one entry, block by block. Raises UnsafeFileError, or UnreadableFileError for damaged XML."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._is_ods_content = name in ("content.xml", "styles.xml")
        self._is_ods_manifest = name == "META-INF/manifest.xml"
        self._overlap = _ODS_OVERLAP if self._is_ods_content else _OVERLAP
        self._tail = b""
        self._is_first = True
        self._cells = 0 if name.startswith("xl/worksheets/") else None
        self._relations = bytearray() if name.lower().endswith(".rels") else None

    def at(self, block: bytes) -> None:
        """Look at the next block."""
        if self._is_first and block.startswith(_ARCHIVES):
            raise self._unsafe("no entry may be an archive", _ANEW)
        self._is_first = False
        window = self._tail + block
        if any(word in window for word in _DTD):
            raise self._unsafe("no part may declare a document type or entities", _ANEW)
        if self._is_ods_content and _ODS_LINK.search(window):
            raise self._unsafe("it must not link to other files", UNLINK)
        if self._is_ods_manifest and b"encryption-data" in window:
            raise self._unsafe("it must not be encrypted", "Save it without a password")
        self._tail = window[-self._overlap :]
        if self._cells is not None:
            self._count_cells(block)
        if self._relations is not None:
            self._relations += block
            if len(self._relations) > _MAX_RELATIONS:
                raise self._unsafe("relationships must be at most 20 MiB", _ANEW)

    def _count_cells(self, block: bytes) -> None:
        """Refuse a sheet of too many cells before they are laid out; one between two blocks may be missed."""
        assert self._cells is not None
        self._cells += sum(block.count(start) for start in _CELLS)
        if self._cells > limits.MAX_CELLS:
            rule = f"a sheet must have at most {limits.MAX_CELLS:,} cells"
            raise unreadable(self._path, rule, f"more in {short(self._name)!r}", "Split it")

    def end(self) -> None:
        """Look at what can only be told of the whole entry."""
        if not self._relations:
            return
        for kind, target in _external(self._path, self._name, bytes(self._relations)):
            # A hyperlink is opened by a person or not at all; anything else is fetched with the workbook.
            if not kind.endswith("/hyperlink"):
                where = f"{short(target)!r} in {short(self._name)!r}"
                raise unsafe(self._path, "it must not link to other files", where, UNLINK)

    def _unsafe(self, rule: str, fix: str) -> Exception:
        return unsafe(self._path, rule, f"{short(self._name)!r}", fix)


def _external(path: Path, name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield kind and target of the relationships that lead out of the file."""
    found: list[dict[str, str]] = []

    class Relations:
        """Takes what the parser finds, and keeps no tree."""

        def start(self, _tag: str, attributes: dict[str, str]) -> None:
            """Keep what leads out of the file."""
            if attributes.get("TargetMode") == "External":
                found.append(dict(attributes))

        def close(self) -> None:
            """Nothing is left to do."""

    xml: Any = safe_xml()
    parser = xml.DefusedXMLParser(target=Relations(), forbid_dtd=True)
    try:
        parser.feed(content)
        parser.close()
    except (xml.ParseError, ValueError, LookupError) as error:
        raise unreadable(path, f"{short(name)!r} must be XML", short(str(error)), _ANEW) from None
    for one in found:
        yield one.get("Type", ""), one.get("Target", "")
