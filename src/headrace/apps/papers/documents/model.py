"""What reading a file gives: a document whose pages know their offsets, or the reason why there is none."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from headrace.apps.papers.documents.boxes import Box, WordBoxes
from headrace.apps.papers.documents.headings import find_sections
from headrace.apps.papers.documents.sections import Section, section_at

#: Larger files are not read.
MAX_BYTES = 50 * 1024 * 1024
#: Longer documents are not read.
MAX_PAGES = 2_000
#: More text than this is a data dump, no paper.
MAX_CHARS = 10_000_000


class Reason(StrEnum):
    """Why a file gave no document."""

    #: It needs a password.
    ENCRYPTED = "encrypted"
    #: It holds nothing.
    EMPTY = "empty"
    #: It holds pictures of pages and no text.
    IMAGE_ONLY = "image_only"
    #: It is broken: truncated or malformed.
    DAMAGED = "damaged"
    #: Its content is of another type than its name says.
    WRONG_TYPE = "wrong_type"
    #: No reader is installed for its type.
    UNSUPPORTED_TYPE = "unsupported_type"
    #: It is above a documented limit.
    TOO_LARGE = "too_large"
    #: It declares what could make its reader fetch other files or grow without bound.
    UNSAFE = "unsafe"
    #: Its characters cannot be told.
    BAD_ENCODING = "bad_encoding"
    #: The system refuses to read it, or it vanished.
    NOT_READABLE = "not_readable"
    #: It is a link that leads out of the folder.
    OUTSIDE_FOLDER = "outside_folder"
    #: The installed reader for its type failed.
    READER_FAILED = "reader_failed"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file without a document: a reason for machines and a message for people."""

    name: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page: `text[char_start:char_end]` of its document. Numbered from 1."""

    number: int
    char_start: int
    char_end: int
    #: Points (1/72 inch) of the page as it is displayed; 0 where pages have no size, as those of text have none.
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Document:
    """The extracted text of one file. All offsets count characters of `text`."""

    #: sha256 (64 hex digits) of the file's bytes: equal content is the same document, whatever its name.
    document_id: str
    name: str
    text: str
    pages: tuple[Page, ...]
    #: The reader and its version, for the record of the run.
    reader: str
    #: What the reader wants people to know, such as pages without text.
    notes: tuple[str, ...] = ()
    #: In the order of the text, without overlap; empty where none were found.
    sections: tuple[Section, ...] = ()
    #: What the file says of itself, such as `title`, `doi`, `pmid`, `journal`, `year`.
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: Where words stand on their pages; None where the reader cannot tell.
    word_boxes: WordBoxes | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_pages(
        cls, name: str, content: bytes, page_texts: Sequence[str], *, reader: str, notes: Sequence[str] = ()
    ) -> Self:
        """Join the texts of pages; sections are found by their headings.

        >>> document = Document.of_pages("a.txt", b"...", ["One.", "Two."], reader="mine 1.0")
        >>> document.text, document.page_of(6)
        ('One.\\n\\nTwo.', 2)
        """
        text, pages = joined_pages(page_texts)
        return cls(content_id(content), name, text, pages, reader, tuple(notes), find_sections(text))

    def page_of(self, offset: int) -> int:
        """The number of the page that holds the character at `offset` (the gap after a page belongs to it)."""
        starts = [page.char_start for page in self.pages]
        return self.pages[max(0, bisect_right(starts, offset) - 1)].number

    def section_of(self, offset: int) -> Section | None:
        """The section that holds the character at `offset`; None where no section does."""
        return section_at(self.sections, offset)

    def boxes(self, start: int, end: int) -> list[Box]:
        """Where `text[start:end]` stands on the pages: a box for each stretch of a line; empty where nobody knows.

        >>> Document.of_pages("a.txt", b"...", ["One."], reader="mine 1.0").boxes(0, 4)
        []
        """
        return [] if self.word_boxes is None else self.word_boxes.between(start, end)


def joined_pages(page_texts: Sequence[str]) -> tuple[str, tuple[Page, ...]]:
    """The text of a document, and where its pages lie in it."""
    text, pages = "", []
    for number, page_text in enumerate(page_texts, start=1):
        if text and page_text:
            # A sentence may run over the end of a page; after its full stop a paragraph ends.
            text += "\n\n" if text.endswith((".", "!", "?", ":")) else "\n"
        pages.append(Page(number, len(text), len(text) + len(page_text)))
        text += page_text
    return text, tuple(pages)


def content_id(content: bytes) -> str:
    """The id of a document: sha256 of its bytes, as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()
