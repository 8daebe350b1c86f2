"""The port for document readers, and how the right one is found.

Other packages add readers through the entry-point group `headrace.papers.readers`: each entry is a class without
arguments, or an object, that has what `DocumentReader` asks for. For the suffixes it names it comes before ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

from headrace.apps.papers.documents.model import MAX_BYTES, Document, Reason, Unreadable
from headrace.apps.papers.errors import ReaderPluginError

ENTRY_POINT_GROUP = "headrace.papers.readers"


@runtime_checkable
class DocumentReader(Protocol):
    """Turns the bytes of one file into a document. Called from several threads; guard what is not made for that."""

    @property
    def name(self) -> str:
        """Name and version, kept with every result: another version may give other offsets."""
        ...

    @property
    def suffixes(self) -> frozenset[str]:
        """The file name endings it reads, lower case with their dot: `.pdf`."""
        ...

    def read(self, name: str, content: bytes) -> Document | Unreadable:
        """Read a file. What is wrong with the file is an `Unreadable`, never an exception."""
        ...


Readers = Mapping[str, DocumentReader]


def default_readers() -> Readers:
    """The reader for each suffix: ours, and above them those of installed packages. Raises `ReaderPluginError`.

    >>> sorted(default_readers())
    ['.markdown', '.md', '.nxml', '.pdf', '.text', '.txt', '.xml']
    """
    from headrace.apps.papers.documents.jats import JatsReader
    from headrace.apps.papers.documents.pdf import PdfReader
    from headrace.apps.papers.documents.plain import MarkdownReader, PlainTextReader

    found: list[DocumentReader] = [PdfReader(), PlainTextReader(), MarkdownReader(), JatsReader()]
    found += [_load(entry) for entry in sorted(entry_points(group=ENTRY_POINT_GROUP))]
    return {suffix: reader for reader in found for suffix in reader.suffixes}


def read_document(
    path: Path | str, *, name: str | None = None, readers: Readers | None = None
) -> Document | Unreadable:
    """Read the file at `path`; `name` is what results call it (default: the file's name). Never raises for the file.

    >>> read_document("/no/such/file.txt").reason
    <Reason.NOT_READABLE: 'not_readable'>
    """
    path = Path(path)
    name = path.name if name is None else name
    reader = (default_readers() if readers is None else readers).get(path.suffix.lower())
    if reader is None:
        return unsupported(name)
    content = read_content(path, name)
    return content if isinstance(content, Unreadable) else _read(reader, name, content)


def read_content(path: Path, name: str) -> bytes | Unreadable:
    """The bytes of a file of at most `MAX_BYTES`."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        return Unreadable(name, Reason.NOT_READABLE, f"cannot be read: {error.strerror or error}")
    if len(content) > MAX_BYTES:
        return Unreadable(name, Reason.TOO_LARGE, f"is larger than {MAX_BYTES // 2**20} MiB; split it")
    return content


def unsupported(name: str) -> Unreadable:
    """The answer for a type without a reader."""
    kind = Path(name).suffix.lower() or "without an ending"
    return Unreadable(
        name, Reason.UNSUPPORTED_TYPE, f"no reader for files {kind}; convert it to PDF, text, Markdown or JATS"
    )


def _read(reader: DocumentReader, name: str, content: bytes) -> Document | Unreadable:
    try:
        return reader.read(name, content)
    except Exception as error:  # a foreign reader, or a file that no reader was made for, ends one row and no batch
        return Unreadable(name, Reason.READER_FAILED, f"{reader.name} failed: {type(error).__name__}: {error}"[:300])


def _load(entry: EntryPoint) -> DocumentReader:
    try:
        thing = entry.load()
        reader = thing() if isinstance(thing, type) else thing
    except Exception as error:
        raise ReaderPluginError(
            f"the document reader {entry.name!r} ({entry.value}) cannot be loaded: {error}"
        ) from error
    if not isinstance(reader, DocumentReader):
        raise ReaderPluginError(f"the document reader {entry.name!r} ({entry.value}) needs name, suffixes and read()")
    return reader
