"""Tables of JATS as text: a line per row, cells separated by " | ", spanned cells repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace.apps.papers.documents.jats_inline import inline_text
from headrace.apps.papers.documents.xml_tree import Node

SEPARATOR = " | "
#: No table of a paper is wider; a span may say anything.
_MAX_COLUMNS = 200
#: So many characters of a table may be repetitions; a few spans could else make gigabytes.
_MAX_REPEATED = 100_000


def table_rows(table: Node) -> list[str]:
    """The rows of an HTML-like or CALS table, each on one line.

    >>> from headrace.apps.papers.documents.xml_tree import parse_xml
    >>> table_rows(parse_xml(b"<table><tr><td rowspan='2'>A</td><td>1</td></tr><tr><td>2</td></tr></table>"))
    ['A | 1', 'A | 2']
    """
    grid = _Grid()
    rows = (grid.row(node) for node in table.walk() if node.tag in ("tr", "row"))
    # A line across the whole table is said once.
    return [cells[0] if len(set(cells)) == 1 else SEPARATOR.join(cells).strip() for cells in rows if any(cells)]


class _Grid:
    """Fills spanned places with the text of their cell."""

    def __init__(self) -> None:
        #: What reaches down into the next row, by column: rows left, and the text.
        self._above: dict[int, tuple[int, str]] = {}
        self._repeats = _MAX_REPEATED

    def row(self, row: Node) -> list[str]:
        cells: list[str] = []
        below: dict[int, tuple[int, str]] = {}
        for cell in row.all("td", "th", "entry"):
            self._fill(cells, below)
            text, (wide, high) = inline_text(cell), _spans(cell)
            for index in range(min(wide, _MAX_COLUMNS - len(cells))):
                if high > 1:
                    below[len(cells)] = (high - 1, text)
                cells.append(self._repeated(text) if index else text)
        self._fill(cells, below)
        self._above = below
        return cells

    def _fill(self, cells: list[str], below: dict[int, tuple[int, str]]) -> None:
        while len(cells) in self._above and len(cells) < _MAX_COLUMNS:
            left, text = self._above[len(cells)]
            if left > 1:
                below[len(cells)] = (left - 1, text)
            cells.append(self._repeated(text))

    def _repeated(self, text: str) -> str:
        self._repeats -= len(text)
        return text if self._repeats >= 0 else ""


def _spans(cell: Node) -> tuple[int, int]:
    wide, high = _number(cell, "colspan", 1), _number(cell, "rowspan", 1)
    if cell.tag == "entry":
        high = _number(cell, "morerows", 0) + 1
        first, last = (re.search(r"\d+$", cell.attributes.get(name, "")) for name in ("namest", "nameend"))
        wide = int(last[0]) - int(first[0]) + 1 if first and last else 1
    return max(1, min(wide, _MAX_COLUMNS)), max(1, high)


def _number(cell: Node, name: str, default: int) -> int:
    value = cell.attributes.get(name, "").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 6 else default


def tables_in(node: Node) -> Iterator[Node]:
    """The tables below an element, of alternatives only the first."""
    seen = [part for part in node.walk() if part.tag in ("table", "tgroup")]
    inner = {id(part) for table in seen for part in table.walk() if part is not table}
    return (table for table in seen if id(table) not in inner)
