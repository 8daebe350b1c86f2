"""Cells that cannot hurt: what a spreadsheet would run as a formula is shown as text.

See OWASP, "CSV Injection": a cell that begins with = + - @, a tab or a carriage return may be executed when it is
opened or pasted. Such text gets an apostrophe in front, also inside XLSX, where the type alone protects only until
somebody saves it as CSV.
"""

from __future__ import annotations

import re

from headrace.apps.papers.template import Value

#: Excel's limit for one cell.
MAX_CELL_CHARS = 32_767
_CUT = " … [cut]"
_NEUTRALISED = re.compile(r"^'(?=[ \u00a0]*[=+\-@\t\r\n])")
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


def shown(value: Value | None) -> str:
    """Return a value as text, verbatim: the items of a list with semicolons between them, yes/no as true and false.

    >>> shown(["a", "b"]), shown(True), shown(0.5), shown(None)
    ('a; b', 'true', '0.5', '')
    """
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return "; ".join(value)
        case _:
            return str(value)


def safe_value(value: Value | int | None) -> str:
    """Return a value for a cell of a table of text: numbers as they are, all else neutralised.

    >>> safe_value(-5), safe_value("-5"), safe_value(["=a"])
    ('-5', "'-5", "'=a")
    """
    return shown(value) if isinstance(value, int | float) else safe_text(shown(value))


def typed(text: str) -> str:
    """Return what a person typed or copied, without the apostrophe of a neutralised text.

    >>> typed("'=1+1"), typed("'tis")
    ('=1+1', "'tis")
    """
    return _NEUTRALISED.sub("", text, count=1)


def _cut(text: str) -> str:
    whole = text.encode("utf-16-le")[: 2 * (MAX_CELL_CHARS - len(_CUT))]
    return whole.decode("utf-16-le", "ignore") + _CUT


def _excel_length(text: str) -> int:
    # Excel counts UTF-16: signs beyond the basic plane are two.
    return len(text.encode("utf-16-le")) // 2
