"""Files that want to do harm, or are damaged, each made in a folder of a test."""

from __future__ import annotations

import random
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.unit.report_files import ROWS, SHEET, biff, changed, ods, ole, with_entry, xls, xlsx, zipped

RELATION = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}" '
    'TargetMode="External"/></Relationships>'
)
LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><testsuite><testcase name="&c;"/></testsuite>'
)


def far(path: Path, cell: str) -> Path:
    """Write a workbook whose second row is one cell far away."""
    xlsx(path, [["a"], ["b"]])
    row = cell.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return changed(
        path, SHEET, lambda part: part.replace(b'r="2"', f'r="{row}"'.encode()).replace(b'"A2"', f'"{cell}"'.encode())
    )


def lying_dimension(path: Path) -> Path:
    """Write a workbook whose sheet says that it is as large as a sheet can be; its cells are few."""
    return changed(xlsx(path), SHEET, lambda part: part.replace(b'ref="A1:D3"', b'ref="A1:XFD1048576"'))


def linked(path: Path, name: str, kind: str, target: str) -> Path:
    """Write a workbook with a relationship that leads out of it."""
    return with_entry(xlsx(path), name, RELATION.format(kind=kind, target=target).encode())


def symlink(path: Path) -> Path:
    """Write a workbook with an entry that is a symbolic link."""
    entry = zipfile.ZipInfo("xl/link.xml")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return with_entry(xlsx(path), entry, b"/etc/passwd")


def many_entries(path: Path, count: int) -> Path:
    """Write a workbook with so many entries."""
    xlsx(path)
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(count - len(archive.namelist())):
            archive.writestr(f"xl/{number}.xml", b"<a/>")
    return path


def listed_millions(path: Path) -> Path:
    """Write an archive whose list names a million entries that are not there."""
    head = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    listing = (head + b"a") * 300_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(listing), 30, 0)
    path.write_bytes(b"PK\x03\x04".ljust(30, b"\0") + listing + end)
    return path


def locked(path: Path) -> Path:
    """Write a workbook whose entries say that they are encrypted."""
    data = bytearray(xlsx(path).read_bytes())
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(sign, at + 1)) >= 0:
            data[at + offset] |= 1
    path.write_bytes(data)
    return path


def packed_otherwise(path: Path) -> Path:
    """Write an archive that is packed in a way no workbook is."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("xl/workbook.xml", b" " * 1_000)
    return path


def written(content: bytes) -> Callable[[Path], Path]:
    """Return what writes some bytes."""

    def write(path: Path) -> Path:
        path.write_bytes(content)
        return path

    return write


def dtd(content: bytes) -> Callable[[Path], Path]:
    """Return what writes a workbook with a part that has a document type."""
    return lambda path: changed(xlsx(path), "xl/sharedStrings.xml", lambda _: content)


def shared(path: Path) -> Path:
    """Write a workbook in which many cells share one long text."""
    text = "".join(random.Random(1).choices("rainfall ", k=30_000))
    return xlsx(path, [*ROWS, *[[text] * 4] * 500])


def spread(rows: int, columns: int) -> Callable[[Path], Path]:
    """Return what writes an OpenDocument sheet of one cell that is repeated."""
    cell = (
        f'<table:table-row table:number-rows-repeated="{rows}"><table:table-cell office:value-type="string" '
        f'table:number-columns-repeated="{columns}"><text:p>a</text:p></table:table-cell></table:table-row>'
    )
    return lambda path: ods(path, extra=cell)


def merged(path: Path) -> Path:
    """Write a workbook with tens of thousands of merged ranges, each of them the whole sheet but its header."""
    merges = b"<mergeCells>%s</mergeCells>" % noise(b'<mergeCell ref="A2:XFD200000"/>' * 90_000, b"<mergeCell ")
    xlsx(path, [*ROWS, *[["TC", "a", None, "ok"]] * 2_000])
    return changed(path, SHEET, lambda part: part.replace(b"</sheetData>", b"</sheetData>" + merges))


def unclosed(path: Path) -> Path:
    """Write a workbook whose sheet has hundreds of thousands of cells that never end."""
    return changed(xlsx(path), SHEET, lambda part: part + noise(b'<c r="A1" t="e"><f>' * 200_000, b"<c "))


def noise(content: bytes, before: bytes) -> bytes:
    """Return XML with a comment at every element, so that it does not pack as well as a bomb."""
    chance = random.Random(3)
    return b"".join(b"<!--%x-->" % chance.getrandbits(64) + before + part for part in content.split(before)[1:])


DEEP = b"<testsuites>" + b"<a>" * 100_000
WIDE = b"a" + b"," * 3_000_000
QUOTED = b"id,title,status\n" + b'"a\n",' * 1_000_000
LINK_ODS = '<table:table table:name="Other"><table:table-source xlink:href="file.ods"/></table:table>'
IMAGE_ODS = '<draw:frame><draw:image draw:x="1" xlink:href="http://example.com/a.png"/></draw:frame>'
LOCKED_ODS = '<manifest><encryption-data xmlns="urn:x"/></manifest>'
#: What says that an old workbook has a password.
FILE_PASS = struct.pack("<HHHHH48x", 0x002F, 54, 1, 1, 1)
#: A number in the last cell that there can be.
FAR_XLS = struct.pack("<HHHHHd", 0x0203, 14, 0xFFFF, 255, 0, 1.0)

#: Name of the file, what writes it, and words of the error.
UNSAFE: dict[str, tuple[str, Callable[[Path], Path], str]] = {
    "bomb": ("a.xlsx", lambda path: with_entry(xlsx(path), "xl/media/a.xml", b" " * (40 << 20)), "less than 1/100"),
    "nested": ("a.xlsx", lambda path: with_entry(xlsx(path), "xl/embeddings/a.bin", zipped(a=b"b")), "be an archive"),
    "symlink": ("a.xlsx", symlink, "symbolic link, got 'xl/link.xml'"),
    "absolute": ("a.xlsx", lambda path: with_entry(xlsx(path), "/etc/a.xml", b"<a/>"), "within the archive"),
    "parent": ("a.xlsx", lambda path: with_entry(xlsx(path), "xl/../../a.xml", b"<a/>"), "within the archive"),
    "drive": ("a.xlsx", lambda path: with_entry(xlsx(path), "C:\\a.xml", b"<a/>"), "within the archive"),
    "dtd": (
        "a.xlsx",
        dtd(b'<?xml version="1.0"?><!DOCTYPE sst SYSTEM "http://example.com/a.dtd"><sst/>'),
        "document type",
    ),
    "laughs": ("a.xlsx", dtd(LAUGHS), "document type"),
    "utf-16": ("a.xlsx", dtd(LAUGHS.decode().encode("utf-16")), "document type"),
    "far in": ("a.xlsx", dtd(b"<a>" + b"b" * 262_138 + LAUGHS), "document type"),
    "external": (
        "a.xlsx",
        lambda path: with_entry(xlsx(path), "xl/externalLinks/externalLink1.xml", b"<a/>"),
        "other files",
    ),
    "image": (
        "a.xlsx",
        lambda path: linked(path, "xl/drawings/_rels/drawing1.xml.rels", "image", "http://example.com/a.png"),
        "link to other files, got 'http://example.com/a.png' in",
    ),
    "path": (
        "a.xlsx",
        lambda path: linked(path, "xl/externals/_rels/a.xml.rels", "externalLinkPath", "\\\\host\\a.xlsx"),
        "link to other files",
    ),
    "encrypted": ("a.xlsx", written(ole(b"", ["EncryptedPackage"])), "encrypted"),
    "encrypted xls": ("a.xls", written(ole(b"", ["Workbook", "EncryptionInfo"])), "encrypted"),
    "locked xls": ("a.xls", lambda path: written(ole(biff(ROWS, first=FILE_PASS)))(path), "encrypted"),
    "locked": ("a.xlsx", locked, "encrypted"),
    "lzma": ("a.xlsx", packed_otherwise, "stored or deflated"),
    "1,001": ("a.xlsx", lambda path: many_entries(path, 1_001), "at most 1,000 entries, got 1,001"),
    "millions": ("a.xlsx", listed_millions, "at most 1,000 entries, got 300,000"),
    "macros": ("a.xlsm", lambda path: with_entry(xlsx(path), "xl/vbaProject.bin", b"a"), "no macros"),
    "macros xls": ("a.xls", lambda path: xls(path, streams=["Workbook", "_VBA_PROJECT_CUR"]), "no macros"),
    "macros ods": ("a.ods", lambda path: with_entry(ods(path), "Basic/Standard/a.xml", b"<a/>"), "no macros"),
    "ods source": ("a.ods", lambda path: ods(path, extra=LINK_ODS), "link to other files"),
    "ods image": ("a.ods", lambda path: ods(path, extra=IMAGE_ODS), "link to other files"),
    "ods locked": ("a.ods", lambda path: ods(path, manifest=LOCKED_ODS), "encrypted"),
    "junit laughs": ("a.xml", written(LAUGHS), "document type or entities"),
    "junit dtd": ("a.xml", written(b"<!DOCTYPE a SYSTEM 'b'><testsuite/>"), "document type or entities"),
}
UNREADABLE: dict[str, tuple[str, Callable[[Path], Path], str]] = {
    "far": ("a.xlsx", lambda path: far(path, "XFD1048576"), "much more memory or time"),
    "less far": ("a.xlsx", lambda path: far(path, "SF200000"), "much more memory or time"),
    "down": ("a.xlsx", lambda path: far(path, "A900000"), "got 900,000 rows and 1 columns up to sheet 'Cases'"),
    "wide": ("a.xlsx", lambda path: far(path, "XFD2"), "at most 200,000 rows and 1,000 columns"),
    "shared": ("a.xlsx", shared, "50,000,000 characters"),
    "repeated": ("a.ods", spread(1_000_000, 16_000), "must be whole|much more memory"),
    "repeated less": ("a.ods", spread(100_000, 900), "much more memory"),
    "repeated rows": ("a.ods", spread(300_000, 1), "at most 200,000 rows|much more memory"),
    "truncated": ("a.xlsx", lambda path: written(xlsx(path).read_bytes()[:-200])(path), "must be whole"),
    "cut": ("a.xlsx", lambda path: changed(xlsx(path), SHEET, lambda part: part[:300]), "must be whole|damage"),
    "flipped": (
        "a.xlsx",
        lambda path: written(b"".join([(data := xlsx(path).read_bytes())[:100], b"\xff\x00", data[102:]]))(path),
        "must be whole",
    ),
    "no book": ("a.xls", written(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600), "hold a whole workbook"),
    "far xls": ("a.xls", lambda path: written(ole(biff(ROWS, more=FAR_XLS)))(path), "much more memory"),
    "cut xls": ("a.xls", lambda path: written(xls(path).read_bytes()[:2_000])(path), "must be whole|damage"),
    "bad rels": ("a.xlsx", lambda path: with_entry(xlsx(path), "xl/_rels/a.rels", b"<a"), "must be XML"),
    "deep": ("a.xml", written(DEEP), "at most 50 deep"),
    "open": ("a.xml", written(b"<testsuites><testsuite>"), "must be whole XML"),
    "other xml": ("a.xml", written(b"<project/>"), "must be JUnit XML, got the root 'project'"),
    "wide csv": ("a.csv", written(WIDE), "at most 1,000,000 characters"),
    "quoted csv": ("a.csv", written(QUOTED), "at most 1,000,000 characters"),
    "field csv": ("a.csv", written(b"a,b\n" + b"c" * 200_000), "delimited text"),
    "columns csv": ("a.csv", written(b"," * 2_000), "1,000 columns"),
    "bytes csv": ("a.csv", written(b"id,title\n\xff\xff\xff\n"), "UTF-8, UTF-16"),
    "encoding": ("a.xml", written(b'<?xml version="1.0" encoding="utf-7"?><testsuite/>'), "must be UTF-8 or UTF-16"),
    "no encoding": ("a.xml", written(b'<?xml version="1.0" encoding="none"?><testsuite/>'), "must be whole|UTF-8 or"),
    "empty": ("a.xlsx", written(b""), "must have content, got 0 bytes"),
}

SPACES = " " * 30_000
#: Files that are read, and that would take for ever or very much memory if they were read without care.
HARD: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "dimension": ("a.xlsx", lying_dimension),
    "merged": ("a.xlsx", merged),
    "unclosed": ("a.xlsx", unclosed),
    "spaces": (
        "a.csv",
        written(b"id,title,status,date,duration\n" + f"1,a,x{SPACES}x,1{SPACES}x,1{SPACES}x\n".encode() * 20),
    ),
    "attributes": (
        "a.xml",
        written(f'<testsuite name="{"n" * 3_000_000}">{"<testcase/>" * 2_000}</testsuite>'.encode()),
    ),
}
