"""Plain text and Markdown. The text is kept as written; only characters are cleaned, so quotes stay verbatim."""

from __future__ import annotations

import codecs

from headrace.apps.papers.documents.cleaning import clean_characters
from headrace.apps.papers.documents.magic import foreign_type
from headrace.apps.papers.documents.model import MAX_CHARS, MAX_PAGES, Document, Reason, Unreadable

#: Longer marks first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class PlainTextReader:
    """Text in UTF-8, or in UTF-16 or UTF-32 with a byte order mark. A form feed begins a new page."""

    name = "plain text 1"
    suffixes = frozenset({".txt", ".text"})

    def read(self, name: str, content: bytes) -> Document | Unreadable:
        """Read a text file."""
        kind = foreign_type(content)
        if kind is not None:
            return Unreadable(name, Reason.WRONG_TYPE, f"is {kind}, not text; give it the right ending")
        try:
            text = content.decode(_encoding(content))
        except UnicodeDecodeError as error:
            where = f"(byte {error.start})"
            return Unreadable(name, Reason.BAD_ENCODING, f"is neither UTF-8 nor UTF-16 {where}; save it as UTF-8")
        if "\0" in text:
            return Unreadable(name, Reason.WRONG_TYPE, "holds binary data, not text")
        return self._document(name, content, text)

    def _document(self, name: str, content: bytes, text: str) -> Document | Unreadable:
        pages = [clean_characters(page) for page in text.split("\f")]
        if not any(pages):
            return Unreadable(name, Reason.EMPTY, "holds no text")
        if len(text) > MAX_CHARS or len(pages) > MAX_PAGES:
            return Unreadable(name, Reason.TOO_LARGE, f"has more than {MAX_CHARS:,} characters or {MAX_PAGES:,} pages")
        return Document.of_pages(name, content, pages, reader=self.name)


class MarkdownReader(PlainTextReader):
    """Markdown, read as the text it is: headings and list items end sentences, markup stays in quotes."""

    name = "markdown 1"
    suffixes = frozenset({".md", ".markdown"})


def _encoding(content: bytes) -> str:
    return next((encoding for mark, encoding in _MARKS if content.startswith(mark)), "utf-8")
