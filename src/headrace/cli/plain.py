"""Text that shows what a terminal would obey."""

from __future__ import annotations


def plain(text: str) -> str:
    """Return text without anything a terminal would obey.

    >>> plain("red: \\x1b[31m!")
    'red: \\\\x1b[31m!'
    """
    return "".join(sign if sign.isprintable() or sign in "\n\t" else ascii(sign)[1:-1] for sign in text)
