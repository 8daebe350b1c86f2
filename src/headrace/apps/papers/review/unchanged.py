"""Whether a cell still says what was written, allowing for what spreadsheet programs do to cells by themselves.

What a program turned into a date, or wrote in the notation of its country, cannot be told from an edit with certainty.
There the benefit of the doubt is given: these cells only guard against sheets that were sorted in part, and against
values that were overwritten where `edited_value` was meant.
"""

from __future__ import annotations

import math
import re

from headrace.apps.papers.output.cells import safe_value, shown
from headrace.apps.papers.template import Value

_LOOKS_LIKE_A_DATE_OR_NUMBER = re.compile(r"'?[\d\s.,:/%eE+-]*\d[\d\s.,:/%eE+-]*")
_ISO = re.compile(r"\d{4}(-\d{2}){0,2}")


def is_unchanged(written: Value | None, cell: object) -> bool:
    """Whether `cell` is what was written, or may be.

    >>> is_unchanged(40, 40.0), is_unchanged(40, "45"), is_unchanged("2021-03", "Mrz 21"), is_unchanged(True, "TRUE")
    (True, False, True, True)
    """
    text = safe_value(written)
    if isinstance(cell, str):
        if _flat(cell) in (_flat(text), _flat(shown(written))):
            return True
        if isinstance(written, bool):
            return cell.casefold() == text
        if isinstance(written, int | float):
            return _same_number(written, cell)
        return _may_be_reformatted(text, cell)
    if isinstance(cell, bool):
        return written is cell or text.casefold() == str(cell).casefold()
    if isinstance(cell, int | float):
        return _same_number(written, cell)
    # A date or a time: nobody types one over a value that is none.
    return _LOOKS_LIKE_A_DATE_OR_NUMBER.fullmatch(text) is not None


def _flat(text: str) -> str:
    return " ".join(text.split()).removeprefix("'")


def _same_number(written: Value | None, cell: object) -> bool:
    one, other = _number(written), _number(cell)
    if one is None or other is None:
        return False
    # Of a number above 11 digits a table keeps six: 1.23457E+11.
    rounded = isinstance(cell, str) and "e" in cell.casefold()
    return math.isclose(one, other, rel_tol=1e-5 if rounded else 1e-14)


def _number(value: object) -> float | None:
    text = str(value).strip()
    if text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def _may_be_reformatted(text: str, cell: str) -> bool:
    if not _LOOKS_LIKE_A_DATE_OR_NUMBER.fullmatch(text):
        return False
    both_iso = _ISO.fullmatch(text) and _ISO.fullmatch(cell.strip())
    return not both_iso or cell.strip().startswith(text)
