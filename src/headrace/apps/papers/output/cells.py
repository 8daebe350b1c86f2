"""Values as text for cells; what a spreadsheet would run as a formula is neutralised, see `sheets.cells`."""

from __future__ import annotations

import re

from headrace.apps.papers.template import Value
from headrace.apps.sheets.cells import safe_text

_NEUTRALISED = re.compile(r"^'(?=[ \u00a0]*[=+\-@\t\r\n])")


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
