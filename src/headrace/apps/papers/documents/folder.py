"""Which documents a folder holds: listed once, in a stable order, equal contents together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.apps.papers.documents.model import Reason, Unreadable, content_id
from headrace.apps.papers.documents.reader import Readers, default_readers, read_content, unsupported
from headrace.apps.papers.errors import FolderError, NoDocumentsError


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """One content in the folder, under the first of its names."""

    document_id: str
    #: Path relative to the folder, with forward slashes.
    name: str
    path: Path
    #: Bytes.
    size: int
    #: Other files with the same content.
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What a folder offers: documents to extract, and files that cannot be."""

    folder: Path
    documents: tuple[FoundDocument, ...]
    problems: tuple[Unreadable, ...] = field(default=())

    @property
    def duplicate_count(self) -> int:
        """How many files only repeat another one."""
        return sum(len(document.duplicates) for document in self.documents)


def scan_folder(folder: Path | str, *, readers: Readers | None = None) -> Selection:
    """List the documents below `folder`, by depth and name; the first name of equal contents keeps the document.

    Hidden files and folders are skipped, folders that are links are not entered, and a link to a file outside is a
    problem, as is every file without a reader. Raises `FolderError`, and `NoDocumentsError` when nothing is left.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FolderError(f"{folder} is not a folder. Name the folder that holds the documents.")
    known = default_readers() if readers is None else readers
    problems: list[Unreadable] = []
    found: dict[str, FoundDocument] = {}
    for path in sorted(_files(root, problems), key=lambda path: _order(path, root)):
        item = _look_at(path, root, known)
        if isinstance(item, Unreadable):
            problems.append(item)
            continue
        first = found.get(item.document_id)
        found[item.document_id] = replace(first, duplicates=(*first.duplicates, item.name)) if first else item
    if not found:
        raise NoDocumentsError
    return Selection(root, tuple(found.values()), tuple(problems))


def _order(path: Path, root: Path) -> tuple[int, tuple[str, ...]]:
    # Shallow first: of equal contents the original is rarely the one in a sub-folder.
    parts = path.relative_to(root).parts
    return len(parts), parts


def _files(root: Path, problems: list[Unreadable]) -> Iterator[Path]:
    def refused(error: OSError) -> None:
        name = _shown(Path(error.filename).relative_to(root))
        problems.append(Unreadable(name, Reason.NOT_READABLE, f"cannot be listed: {error.strerror}"))

    for folder, inner, names in os.walk(root, onerror=refused):
        inner[:] = [name for name in inner if not name.startswith(".")]
        # Links to folders come among the folders; walk does not enter them, and those that lead out are reported.
        out = [name for name in inner if _leads_out(Path(folder, name), root)]
        yield from (Path(folder, name) for name in [*names, *out] if not name.startswith((".", "~$")))


def _leads_out(path: Path, root: Path) -> bool:
    return path.is_symlink() and not path.resolve().is_relative_to(root.resolve())


def _look_at(path: Path, root: Path, readers: Readers) -> FoundDocument | Unreadable:
    name = _shown(path.relative_to(root))
    if _leads_out(path, root):
        return Unreadable(name, Reason.OUTSIDE_FOLDER, "is a link that leads out of the folder; copy the file instead")
    if path.suffix.lower() not in readers:
        return unsupported(name)
    if not path.is_file():
        return Unreadable(name, Reason.NOT_READABLE, "is not a regular file")
    content = read_content(path, name)
    if isinstance(content, Unreadable):
        return content
    return FoundDocument(content_id(content), name, path, len(content))


def _shown(path: Path) -> str:
    # Names that are not UTF-8 arrive with lone surrogates, which neither JSON nor a database takes.
    return path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
