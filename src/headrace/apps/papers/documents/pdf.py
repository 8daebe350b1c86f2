"""PDF text by pdfium. Text only: a scanned page holds a picture, and is named as such."""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from headrace.apps.papers.documents.boxes import Box, WordBoxes
from headrace.apps.papers.documents.cleaning import words_of
from headrace.apps.papers.documents.columns import Gutter
from headrace.apps.papers.documents.headings import find_sections
from headrace.apps.papers.documents.layout import PageText, body_size, join_words, page_lines, page_text
from headrace.apps.papers.documents.lines import Line
from headrace.apps.papers.documents.magic import foreign_type, is_pdf
from headrace.apps.papers.documents.model import (
    MAX_CHARS,
    MAX_PAGES,
    Document,
    Page,
    Reason,
    Unreadable,
    content_id,
    joined_pages,
)
from headrace.apps.papers.documents.pdf_words import page_words
from headrace.apps.papers.documents.running import without_running_lines

# pdfium keeps global state and is not thread-safe: one reader at a time in this process.
_PDFIUM = threading.Lock()
#: So many pages show that a document has columns; then others need less evidence.
_PAGES_OF_A_HABIT = 2
#: Gutters no further apart than this are one, in points.
_SAME_GUTTER = 6.0


@dataclass(slots=True)
class _Pages:
    lines: list[list[Line]] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    gutters: list[list[Gutter]] = field(default_factory=list)


class PdfReader:
    """Reads PDF by pypdfium2: column by column, broken words joined, ligatures spelled out, running lines dropped."""

    #: The number after the layout is raised with every change of the text it gives.
    name = f"pypdfium2 {version('pypdfium2')}, layout 1"
    suffixes = frozenset({".pdf"})

    def read(self, name: str, content: bytes) -> Document | Unreadable:
        """Read a PDF file."""
        if not content:
            return Unreadable(name, Reason.EMPTY, "holds no bytes")
        if not is_pdf(content):
            kind = foreign_type(content) or "something else"
            return Unreadable(name, Reason.WRONG_TYPE, f"is {kind}, not a PDF")
        with _PDFIUM:
            pages = _read_pages(name, content)
        return pages if isinstance(pages, Unreadable) else self._document(name, content, pages)

    def _document(self, name: str, content: bytes, pages: _Pages) -> Document | Unreadable:
        if sum(len(line.text) + 1 for lines in pages.lines for line in lines) > MAX_CHARS:
            return Unreadable(name, Reason.TOO_LARGE, f"holds more than {MAX_CHARS:,} characters")
        kept = without_running_lines(pages.lines)
        body = body_size(kept)
        texts = [page_text(lines, body) for lines in kept]
        blank = [number for number, text in enumerate(texts, start=1) if not text.text]
        notes = [f"{len(blank)} of {len(texts)} pages hold no text (first: page {blank[0]})"] if blank else []
        text, spans, tall, boxes = _joined(texts)
        return Document(
            content_id(content),
            name,
            text,
            tuple(replace(page, width=w, height=h) for page, (w, h) in zip(spans, pages.sizes, strict=True)),
            self.name,
            tuple(notes),
            sections=find_sections(text, tall),
            word_boxes=boxes,
        )


def _joined(texts: Sequence[PageText]) -> tuple[str, list[Page], dict[int, float], WordBoxes]:
    """The text of all pages with broken words joined, and where its pages, tall lines and words are."""
    text, pages = joined_pages([page.text for page in texts])
    page_starts, page_ends = (
        array("L", ends) for ends in zip(*((p.char_start, p.char_end) for p in pages), strict=True)
    )
    tall = array("L", (page.char_start + at for page, own in zip(pages, texts, strict=True) for at in own.tall))
    starts, ends = (
        array("L", (p.char_start + int(at) for p, own in zip(pages, texts, strict=True) for at in own.boxes[first::6]))
        for first in (0, 1)
    )
    text = join_words(text, words_of(text), page_starts, page_ends, tall, starts, ends)
    boxes = WordBoxes()
    corners = ((n, own.boxes[at + 2 : at + 6]) for n, own in enumerate(texts, 1) for at in range(0, len(own.boxes), 6))
    for start, end, (number, corner) in zip(starts, ends, corners, strict=True):
        if start < end:
            boxes.add(start, end, Box(number, *corner))
    sizes = (size for own in texts for size in own.tall.values())
    joined = [Page(page.number, *span) for page, *span in zip(pages, page_starts, page_ends, strict=True)]
    return text, joined, dict(zip(tall, sizes, strict=True)), boxes


def _read_pages(name: str, content: bytes) -> _Pages | Unreadable:
    try:
        pdf = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
            return Unreadable(name, Reason.ENCRYPTED, "is encrypted; save a copy without a password")
        return Unreadable(name, Reason.DAMAGED, "is not a whole PDF; fetch it again")
    try:
        return _pages_of(pdf, name)
    except pdfium.PdfiumError as error:
        return Unreadable(name, Reason.DAMAGED, f"has a page that cannot be read ({error})")
    finally:
        pdf.close()


def _pages_of(pdf: pdfium.PdfDocument, name: str) -> _Pages | Unreadable:
    if len(pdf) > MAX_PAGES:
        return Unreadable(name, Reason.TOO_LARGE, f"has {len(pdf):,} pages, more than {MAX_PAGES:,}; split it")
    pages, pictures = _Pages(), 0
    for index in range(len(pdf)):
        page = pdf[index]
        found: list[Gutter] = []
        pages.lines.append(page_lines(page_words(page), found=found))
        pages.sizes.append(page.get_size())
        pages.gutters.append(found)
        if not pages.lines[-1]:
            pictures += any(True for _ in page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE]))
    if any(pages.lines):
        _look_again(pdf, pages)
        return pages
    if pictures:
        message = "holds only pictures of its pages; run text recognition (OCR) on it first"
        return Unreadable(name, Reason.IMAGE_ONLY, message)
    return Unreadable(name, Reason.EMPTY, f"holds no text on its {len(pdf)} pages")


def _look_again(pdf: pdfium.PdfDocument, pages: _Pages) -> None:
    """Lay out pages without a gutter at which most others have one: there a few lines are enough for columns."""
    places = Counter(round(x / _SAME_GUTTER) for found in pages.gutters for x in {gutter.x for gutter in found})
    usual = {round(g.x / _SAME_GUTTER): g for found in pages.gutters for g in found}
    known = [gutter for place, gutter in usual.items() if places[place] >= _PAGES_OF_A_HABIT]
    if not known:
        return
    for index, found in enumerate(pages.gutters):
        if not found:
            pages.lines[index] = page_lines(page_words(pdf[index]), known)
