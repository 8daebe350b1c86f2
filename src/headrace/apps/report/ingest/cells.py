"""Sheets as they were read: cells, and texts of cells."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from headrace.apps.report.ingest.limits import MAX_TEXT

#: Control characters but line ends and tabs, marks that turn text around or do not show, halves of characters.
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060\\u2066-\\u2069\\ufeff\\ud800-\\udfff]"
)

#: Behind a sign: whether it is drawn as text or as a picture.
_VARIANTS = re.compile("[\\ufe00-\\ufe0f]")


@dataclass(frozen=True)
class Broken:
    """A cell whose formula gave an error such as "#REF!", or whose result nobody stored: the text is empty then."""

    text: str


#: Characters of the longest text that can be a word for a field or a value, or a date or a duration.
MAX_WORD = 100

Cell = str | int | float | bool | datetime | date | timedelta | Broken | None
Rows = list[list[Cell]]
#: First row and column, last row and column, from 0.
Merge = tuple[int, int, int, int]


@dataclass(frozen=True)
class Grid:
    """One sheet: its rows from the first of the sheet on, so that the n-th of them is row n for people."""

    name: str
    rows: Rows
    #: None: the format does not tell.
    merges: tuple[Merge, ...] | None = None
    hidden: bool = False


def text_of(cell: Cell) -> str:
    """Return a cell as text: stripped, with plain line ends, whole numbers without a point.

    >>> text_of(1.0), text_of(" a\\r\\nb "), text_of(timedelta(seconds=90)), text_of(date(2026, 3, 5)), text_of(None)
    ('1', 'a\\nb', '0:01:30', '2026-03-05', '')
    """
    if isinstance(cell, str):
        return _plain(cell)
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    return "" if cell is None or isinstance(cell, Broken) else str(cell)


def _plain(text: str) -> str:
    plain = text.replace("_x000D_", "").replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub("", plain).strip()[:MAX_TEXT]


def key_of(text: str) -> str:
    """Return what of a text tells one word from another: no case, width, punctuation or space.

    >>> key_of("Ｎ／Ａ"), key_of(" Not-Run "), key_of("用例 编号*"), key_of("√")
    ('na', 'notrun', '用例编号', '√')
    """
    # Longer texts are no words, and are none to keep.
    return _key(text) if len(text) <= MAX_WORD else ""


@lru_cache(maxsize=8192)
def _key(text: str) -> str:
    plain = _VARIANTS.sub("", unicodedata.normalize("NFKC", text).casefold())
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] not in "PZC")


def is_blank(cell: Cell) -> bool:
    """Return whether a cell says nothing. One with an error says that much."""
    return cell is None or (isinstance(cell, str) and not cell.strip())
