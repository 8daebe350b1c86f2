"""Files that callers of the service send."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.parsers import expat

from headrace import App, NotFoundError
from headrace.apps.report.errors import NameTakenError
from headrace.apps.report.ingest.formats import Kind, told_kind
from headrace.apps.report.ingest.refusing import short, unreadable, unsafe
from headrace.apps.report.sources import FILE, files_folder, path_of

_BLOCK = 256 * 1024


def store_file(app: App, name: str, data: bytes) -> tuple[dict[str, Any], bool]:
    """Store a file under a name of its own, once it is known to be harmless; return what it is, and whether it is new.

    Raises ConfigError for a file that is refused, InvalidInputError for a name, NameTakenError where another has it.
    """
    path = path_of(app, FILE + name)
    folder = files_folder(app)
    folder.mkdir(parents=True, exist_ok=True)
    stored = {"file_ref": FILE + name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    # Under its own name, which refusals tell; in the same folder, so that it comes to its place whole or not at all.
    with TemporaryDirectory(dir=folder, prefix=".") as drafts:
        draft = Path(drafts) / name
        _write(draft, data)
        _check(draft)
        try:
            os.link(draft, path)
        except FileExistsError:
            if not path.is_file() or path.read_bytes() != data:
                raise NameTakenError(f"there is another file {name!r}: send this one under another name") from None
            return stored, False
    return stored, True


def remove_file(app: App, name: str) -> None:
    """Remove a file that was sent; reports that were made of it stay. Raises InvalidInputError, NotFoundError."""
    try:
        path_of(app, FILE + name).unlink()
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {name!r}") from None


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _check(path: Path) -> None:
    """Raise UnsafeFileError, UnreadableFileError, FileTypeError: what a worker would refuse is refused at once."""
    kind, _ = told_kind(path)
    if kind is Kind.XML:
        _check_declarations(path)


class _Begun(Exception):
    """Nothing can be declared any more."""


def _check_declarations(path: Path) -> None:
    """Refuse XML that declares a document type, which stands before its first element."""

    def refuse(name: str, *_: object) -> None:
        found = f"the document type {short(name)!r}"
        raise unsafe(path, "it must not declare a document type or entities", found, "Leave it out")

    def begin(*_: object) -> None:
        raise _Begun

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.StartElementHandler = refuse, begin
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                parser.Parse(block)
            parser.Parse(b"", True)
    except _Begun:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise unreadable(path, "it must be XML", short(str(error)), "Make the file anew") from None
