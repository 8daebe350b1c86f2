"""Cells that cannot hurt: what a spreadsheet would run as a formula is shown as text.

See OWASP, "CSV Injection": a cell that begins with = + - @, a tab or a carriage return may be executed when it is
opened or pasted. Such text gets an apostrophe in front, also inside XLSX, where the type alone protects only until
somebody saves it as CSV.
"""

from __future__ import annotations

import re

#: Excel's limit for one cell.
MAX_CELL_CHARS = 32_767
_CUT = " … [cut]"
_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")
#: XML 1.0 has no way to write these.
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def safe_text(text: str) -> str:
    """Return text for a cell: neutralised, without characters XML lacks, and at most as long as Excel allows.

    >>> safe_text("=1+1")
    "'=1+1"
    """
    text = _ILLEGAL.sub("�", text)
    if text.lstrip(" \u00a0").startswith(_DANGEROUS):
        text = f"'{text}"
    return text if _excel_length(text) <= MAX_CELL_CHARS else _cut(text)


def _cut(text: str) -> str:
    whole = text.encode("utf-16-le")[: 2 * (MAX_CELL_CHARS - len(_CUT))]
    return whole.decode("utf-16-le", "ignore") + _CUT


def _excel_length(text: str) -> int:
    # Excel counts UTF-16: signs beyond the basic plane are two.
    return len(text.encode("utf-16-le")) // 2
