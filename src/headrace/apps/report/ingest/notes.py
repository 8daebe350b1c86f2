"""Rows of a table that tell of the table: totals, notes and signatures."""

from __future__ import annotations

import re
import unicodedata

from headrace.apps.report.ingest.cells import key_of
from headrace.apps.report.ingest.words import keys

#: Where the word of a total ends: "合计：2000", "Total (all)".
_WORD_END = re.compile(r"[:：\d(（=]")


def is_footer(text: str) -> bool:
    """Return whether a row's first text is a note or a signature below the table.

    >>> is_footer("审核人：李四"), is_footer("Note: all is well"), is_footer("Note is saved")
    (True, True, False)
    """
    before, colon, _ = unicodedata.normalize("NFKC", text).partition(":")
    return bool(colon) and key_of(before) in keys("footers")


def is_total(text: str) -> bool:
    """Return whether a row's first text is the word of a total.

    >>> is_total("合计：2000"), is_total("Total"), is_total("Total price is shown")
    (True, True, False)
    """
    return key_of(_WORD_END.split(unicodedata.normalize("NFKC", text), maxsplit=1)[0]) in keys("totals")
