"""Real PDF files for the tests of papers, drawn line by line."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import reportlab
from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from headrace.apps.papers.documents import Document
from headrace.apps.papers.sentences import Sentence, split_document

FONT = "Vera"
pdfmetrics.registerFont(TTFont(FONT, str(Path(reportlab.__file__).parent / "fonts/Vera.ttf")))


def pdf_of(pages: Sequence[Sequence[str]], *, password: str | None = None, owner: str = "owner") -> bytes:
    """Return a PDF with these lines on its pages."""
    encrypt = None if password is None else StandardEncryption(password, owner)
    buffer = io.BytesIO()
    canvas = Canvas(buffer, encrypt=encrypt)
    for lines in pages:
        canvas.setFont(FONT, 11)
        for row, line in enumerate(lines):
            canvas.drawString(50, 800 - 15 * row, line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def picture_pdf() -> bytes:
    """Return a PDF whose only page is a picture."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.drawImage(ImageReader(Image.new("1", (40, 40), 0)), 50, 500, 100, 100)
    canvas.save()
    return buffer.getvalue()


def sentences_of(*pages: str) -> tuple[Sentence, ...]:
    """Return the sentences of a document with these pages."""
    return split_document(document_of(*pages))


def document_of(*pages: str) -> Document:
    """Return a document with these pages."""
    return Document.of_pages("paper.txt", "\f".join(pages).encode(), pages, reader="test 1")
