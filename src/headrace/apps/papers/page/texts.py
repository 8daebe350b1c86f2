"""The texts that values were extracted from, kept when they are read: offsets count the characters of just these.

    <directory>/papers/texts/<first two digits>/<document id>-<reader>.json

A newer version of a reader may read a file differently, so a text is kept under its reader's name. Where none is kept
the file is read again; a quote that does not stand there any more is then not marked.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from headrace.apps.papers.documents import Document, read_document
from headrace.apps.papers.documents.model import Page
from headrace.apps.sheets.files import written_whole


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document and its pages."""

    text: str
    pages: tuple[Page, ...]

    def page_at(self, offset: int) -> Page | None:
        """The page that holds the character at `offset`; None in a document without pages."""
        index = bisect_right(self.pages, offset, key=lambda page: page.char_start) - 1
        return self.pages[index] if index >= 0 else None

    def holds(self, quote: str | None, start: int | None, end: int | None) -> bool:
        """Whether the quote stands just there."""
        return quote is not None and start is not None and end is not None and self.text[start:end] == quote != ""


class Texts:
    """Keeps texts below a folder, or none at all."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root

    def keep(self, document: Document) -> None:
        """Keep the text of a document. What cannot be written is read again when it is needed."""
        path = self._path(document.document_id, document.reader)
        if path is None or path.exists():
            return
        pages = [astuple(page) for page in document.pages]
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as temporary:
                temporary.write_text(json.dumps({"text": document.text, "pages": pages}), encoding="utf-8")

    def find(self, document_id: str, reader: str, path: Path | None) -> DocumentText | None:
        """The text that a reader took from a document; else what is read from the file today; None without a file."""
        kept = self._kept(document_id, reader)
        if kept is not None or path is None:
            return kept
        document = read_document(path)
        if isinstance(document, Document) and document.document_id == document_id:
            return DocumentText(document.text, document.pages)
        return None

    def _kept(self, document_id: str, reader: str) -> DocumentText | None:
        path = self._path(document_id, reader)
        if path is None:
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return DocumentText(data["text"], tuple(Page(*page) for page in data["pages"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _path(self, document_id: str, reader: str) -> Path | None:
        if self._root is None:
            return None
        digest = hashlib.sha256(reader.encode()).hexdigest()[:12]
        return self._root / document_id[:2] / f"{document_id}-{digest}.json"
