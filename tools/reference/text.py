"""What the generators of reference pages share: the note on top, tables, and the comments of classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

NOTE = "<!-- Written by `make reference`; change the source instead. -->\n"


def comments(source: str) -> dict[str, str]:
    """Return the `#:` comments of a class by the name they stand above; names that follow share them."""
    about: dict[str, str] = {}
    meaning: list[str] = []
    fresh = True
    for line in source.splitlines():
        text = line.strip()
        if re.match(r"(async )?def |@", text) and about:
            break  # its methods
        name = re.match(r"(\w+)\s*[:=]", text)
        if text.startswith("#:"):
            meaning = [text[2:].strip()] if fresh else [*meaning, text[2:].strip()]
            fresh = False
        elif name:
            about[name[1]] = " ".join(meaning)
            fresh = True
    return about


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown; its texts may hold bars.

    >>> print(table(["a", "b"], [["1", "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(cell(text) for text in row)} |" for row in rows)])


def cell(text: str) -> str:
    """Return a text as it may stand in a table."""
    return text.replace("|", "\\|")
