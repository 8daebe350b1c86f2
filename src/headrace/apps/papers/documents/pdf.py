"""PDF text by pdfium. Text only: a scanned page holds a picture, and is named as such."""

from __future__ import annotations

import threading
from importlib.metadata import version

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from headrace.apps.papers.documents.cleaning import clean_characters, drop_running_lines, join_broken_words
from headrace.apps.papers.documents.magic import foreign_type, is_pdf
from headrace.apps.papers.documents.model import MAX_CHARS, MAX_PAGES, Document, Reason, Unreadable

# pdfium keeps global state and is not thread-safe: one reader at a time in this process.
_PDFIUM = threading.Lock()
# pdfium's mark for a hyphen that ends a line; it leaves the line break out.
_LINE_END_HYPHEN = "\ufffe"


class PdfReader:
    """Reads PDF by pypdfium2: words broken at line ends joined, ligatures spelled out, running lines dropped."""

    name = f"pypdfium2 {version('pypdfium2')}"
    suffixes = frozenset({".pdf"})

    def read(self, name: str, content: bytes) -> Document | Unreadable:
        """Read a PDF file."""
        if not content:
            return Unreadable(name, Reason.EMPTY, "holds no bytes")
        if not is_pdf(content):
            kind = foreign_type(content) or "something else"
            return Unreadable(name, Reason.WRONG_TYPE, f"is {kind}, not a PDF")
        with _PDFIUM:
            pages = _page_texts(name, content)
        return pages if isinstance(pages, Unreadable) else self._document(name, content, pages)

    def _document(self, name: str, content: bytes, raw: list[str]) -> Document | Unreadable:
        if sum(map(len, raw)) > MAX_CHARS:
            return Unreadable(name, Reason.TOO_LARGE, f"holds more than {MAX_CHARS:,} characters")
        pages = drop_running_lines([clean_characters(page) for page in raw])
        everything = "\n".join(pages)
        pages = [join_broken_words(page, vocabulary=everything) for page in pages]
        blank = [number for number, page in enumerate(pages, start=1) if not page]
        notes = [f"{len(blank)} of {len(pages)} pages hold no text (first: page {blank[0]})"] if blank else []
        return Document.of_pages(name, content, pages, reader=self.name, notes=notes)


def _page_texts(name: str, content: bytes) -> list[str] | Unreadable:
    try:
        pdf = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
            return Unreadable(name, Reason.ENCRYPTED, "is encrypted; save a copy without a password")
        return Unreadable(name, Reason.DAMAGED, "is not a whole PDF; fetch it again")
    try:
        return _texts_of(pdf, name)
    except pdfium.PdfiumError as error:
        return Unreadable(name, Reason.DAMAGED, f"has a page that cannot be read ({error})")
    finally:
        pdf.close()


def _texts_of(pdf: pdfium.PdfDocument, name: str) -> list[str] | Unreadable:
    if len(pdf) > MAX_PAGES:
        return Unreadable(name, Reason.TOO_LARGE, f"has {len(pdf):,} pages, more than {MAX_PAGES:,}; split it")
    texts, pictures = [], 0
    for index in range(len(pdf)):
        page = pdf[index]
        text = page.get_textpage().get_text_range().replace(_LINE_END_HYPHEN, "-\n")
        texts.append(text)
        if not text.strip():
            pictures += any(True for _ in page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE]))
    if any(text.strip() for text in texts):
        return texts
    if pictures:
        message = "holds only pictures of its pages; run text recognition (OCR) on it first"
        return Unreadable(name, Reason.IMAGE_ONLY, message)
    return Unreadable(name, Reason.EMPTY, f"holds no text on its {len(texts)} pages")
