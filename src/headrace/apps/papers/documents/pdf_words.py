"""Words and their places from a page of a PDF, by pdfium. The caller holds the lock of pdfium."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from headrace.apps.papers.documents.words import RAISED, Word, is_raised

# pdfium's marks for a hyphen that ends a line; it leaves the line break out.
_LINE_END_HYPHENS = (0x2, 0xFFFE)
#: Places are asked for in whole device units; so many of them make a point.
_FINE = 1_000


@dataclass(slots=True)
class _Char:
    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    #: Where the letter stands: both coordinates, for it may be turned.
    at_x: float
    at_y: float
    turn: int

    @property
    def size(self) -> float:
        return self.x1 - self.x0 if self.turn in (90, 270) else self.y1 - self.y0

    @property
    def base(self) -> float:
        place = self.at_x if self.turn in (90, 270) else self.at_y
        return -place if self.turn in (90, 180) else place


_LINE_END = _Char("", 0, 0, 0, 0, 0, 0, 0)


def page_words(page: pdfium.PdfPage) -> list[Word]:
    """The words of a page in the order of the file. Raises PdfiumError."""
    textpage = page.get_textpage()
    try:
        return list(_words(_chars(page, textpage)))
    finally:
        textpage.close()


def _words(chars: Iterator[_Char | None]) -> Iterator[Word]:
    word: Word | None = None
    last = _LINE_END
    spaced = True
    for char in chars:
        if char is None or not char.text:
            spaced = spaced or char is None
            last = _LINE_END
        elif word is not None and last.text and _goes_on(word, last, char):
            _append(word, char)
            last = char
        else:
            if word is not None:
                yield word
            word, last, spaced = _begun(char, spaced=spaced), char, False
    if word is not None:
        yield word


def _begun(char: _Char, *, spaced: bool) -> Word:
    box = (char.x0, char.y0, char.x1, char.y1)
    return Word(char.text, *box, base=char.base, size=char.size, spaced=spaced, turn=char.turn)


def _append(word: Word, char: _Char) -> None:
    if word.text.isdigit() and is_raised(word.size, word.base, on=_begun(char, spaced=False)):
        # The mark of a footnote before its text.
        word.text, word.size, word.base = word.text.translate(RAISED), char.size, char.base
    raised = is_raised(char.size, char.base, on=word)
    word.text += char.text.translate(RAISED) if raised else char.text
    word.x0, word.x1 = min(word.x0, char.x0), max(word.x1, char.x1)
    word.y0, word.y1 = min(word.y0, char.y0), max(word.y1, char.y1)


def _goes_on(word: Word, last: _Char, char: _Char) -> bool:
    if char.turn != word.turn:
        return False
    size = max(word.size, 1.0)
    if char.turn in (90, 270):
        gap = max(char.y0 - last.y1, last.y0 - char.y1)
    else:
        gap = max(char.x0 - last.x1, last.x0 - char.x1)
    return abs(char.base - word.base) < 0.7 * size and gap < 0.5 * size


def _chars(page: pdfium.PdfPage, textpage: pdfium.PdfTextPage) -> Iterator[_Char | None]:
    """Every character with its place; None for a space; an empty text for the end of a line."""
    place, rotation = _placement(page)
    raw = textpage.raw
    rect, x, y = pdfium_c.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    to_rect, to_x, to_y = ctypes.byref(rect), ctypes.byref(x), ctypes.byref(y)
    high = 0
    for index in range(textpage.count_chars()):
        code = pdfium_c.FPDFText_GetUnicode(raw, index)
        if 0xD800 <= code < 0xDC00:
            high = code
            continue
        text, high = _character(code, high), 0
        if text.isspace():
            yield _LINE_END if text in "\r\n" else None
        elif text:
            pdfium_c.FPDFText_GetLooseCharBox(raw, index, to_rect)
            pdfium_c.FPDFText_GetCharOrigin(raw, index, to_x, to_y)
            turn = (round(pdfium_c.FPDFText_GetCharAngle(raw, index) / (math.pi / 2)) * 90 + rotation) % 360
            (x0, y0), (x1, y1) = place(rect.left, rect.top), place(rect.right, rect.bottom)
            at_x, at_y = place(x.value, y.value)
            yield _Char(text, min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1), at_x, at_y, turn)
        if code in _LINE_END_HYPHENS:
            yield _LINE_END


def _character(code: int, high: int) -> str:
    if code in _LINE_END_HYPHENS:
        return "-"
    if high and 0xDC00 <= code < 0xE000:
        code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
    # Code 0 is a glyph that stands for nothing known.
    return "" if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)


def _placement(page: pdfium.PdfPage) -> tuple[Callable[[float, float], tuple[float, float]], int]:
    """From the space of the file to the page as displayed (its crop box and rotation), and that rotation."""
    width, height = (int(side * _FINE) for side in page.get_size())

    def seen(at_x: float, at_y: float) -> tuple[float, float]:
        x, y = ctypes.c_int(), ctypes.c_int()
        size: tuple[Any, ...] = (page.raw, 0, 0, width, height, 0)
        pdfium_c.FPDF_PageToDevice(*size, at_x, at_y, ctypes.byref(x), ctypes.byref(y))
        return x.value / _FINE, y.value / _FINE

    left, top = seen(0, 0)
    (right_x, right_y), (up_x, up_y) = seen(1_000, 0), seen(0, 1_000)
    a, b = (right_x - left) / 1_000, (up_x - left) / 1_000
    c, d = (right_y - top) / 1_000, (up_y - top) / 1_000
    return lambda x, y: (a * x + b * y + left, c * x + d * y + top), page.get_rotation()
