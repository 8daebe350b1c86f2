"""In which order the parts of a page are read: gutters between columns are found, and the page is cut along them.

A gutter is a strip that no word crosses, with prose on both sides. What crosses it, such as a title or a wide table,
bounds it above or below. All conditions guard against one error: cutting a page of one column, or a table, in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.apps.papers.documents.rows import Row, rows_of
from headrace.apps.papers.documents.words import Word, median

#: Points between two places at which a gutter is looked for.
_STEP = 2.0
#: A gutter is at least so wide, in heights of the letters.
_MIN_GUTTER = 0.35
#: Its columns have at least so many lines; where the document has a gutter on other pages, so many.
_MIN_LINES, _MIN_LINES_KNOWN = 4, 1
#: Between the columns of a row there is at least so much space, in heights of the letters, and so many common spaces.
_MIN_GAP, _MIN_GAP_SPACES = 0.7, 2.2
#: A column has at least this share of the page's width.
_MIN_SHARE = 0.2
#: So far from the gutter of other pages a gutter is taken for the same, in points.
_SAME_GUTTER = 8.0
#: So many of the tallest strips of a page are looked at.
_CANDIDATES = 12
_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Gutter:
    """An empty strip: its middle, and from where to where it reaches down the page."""

    x: float
    top: float
    bottom: float

    def holds(self, other: Gutter) -> bool:
        """Whether another one is a part of this one."""
        near = abs(self.x - other.x) < 3 * _STEP
        return near and self.top <= other.top + 1 and self.bottom >= other.bottom - 1


def reading_regions(
    words: Sequence[Word], known: Sequence[float] = (), found: list[Gutter] | None = None
) -> list[list[Word]]:
    """The words of a page in regions, in the order in which they are read; within a region in the order given.

    `known` are the gutters of other pages of the document; those of this page are added to `found`.
    """
    if not words:
        return []
    width = max(word.x1 for word in words) - min(word.x0 for word in words)
    return _Page(width, known, [] if found is None else found).cut(list(words), 0)


@dataclass(frozen=True, slots=True)
class _Page:
    width: float
    known: Sequence[float]
    found: list[Gutter]

    def cut(self, words: list[Word], depth: int) -> list[list[Word]]:
        gutter = self._gutter(words) if depth < _MAX_DEPTH else None
        if gutter is None:
            return [words] if words else []
        self.found.append(gutter)
        above = [word for word in words if word.base < gutter.top]
        below = [word for word in words if word.base > gutter.bottom]
        within = [word for word in words if gutter.top <= word.base <= gutter.bottom]
        left = [word for word in within if word.x0 + word.x1 < 2 * gutter.x]
        right = [word for word in within if word.x0 + word.x1 >= 2 * gutter.x]
        return [region for part in (above, left, right, below) for region in self.cut(part, depth + 1)]

    def _gutter(self, words: list[Word]) -> Gutter | None:
        if len(words) < 8:
            return None
        rows = rows_of(words)
        size = median(word.size for word in words)
        strips = sorted(_strips(words, size), key=lambda strip: strip.top - strip.bottom)
        looked_at: list[Gutter] = []
        for strip in strips:
            if any(other.holds(strip) for other in looked_at):
                continue
            looked_at.append(strip)
            gutter = self._accepted(strip, rows, size)
            if gutter is not None:
                return gutter
            if len(looked_at) >= _CANDIDATES:
                break
        return None

    def _accepted(self, strip: Gutter, rows: Sequence[Row], size: float) -> Gutter | None:
        for band in _prose_bands(strip, rows, size):
            left, right = zip(*(row.halves(strip.x) for row in band), strict=True)
            lefts, rights = [row for row in left if row.words], [row for row in right if row.words]
            least = _MIN_LINES_KNOWN if any(abs(strip.x - x) <= _SAME_GUTTER for x in self.known) else _MIN_LINES
            if min(len(lefts), len(rights)) < least or _is_table(lefts, rights, size) or _is_river(left, right, size):
                continue
            strict = least == _MIN_LINES
            if all(self._is_column(side, size, strict=strict) for side in (lefts, rights)):
                top, bottom = (word.base for word in (_highest(band[0]), _lowest(band[-1])))
                return Gutter(strip.x, top - 0.1, bottom + 0.1)
        return None

    def _is_column(self, rows: Sequence[Row], size: float, *, strict: bool) -> bool:
        x0, x1 = min(row.x0 for row in rows), max(row.x1 for row in rows)
        if strict and x1 - x0 < _MIN_SHARE * self.width:
            return False
        fill = median((row.x1 - row.x0) / (x1 - x0) for row in rows)
        if strict and fill < 0.6:
            return False
        return sum(row.is_prose(size) for row in rows) >= 0.5 * len(rows)


def _strips(words: Sequence[Word], size: float) -> Iterator[Gutter]:
    """Strips that no word crosses, between the words that do."""
    left, right = min(word.x0 for word in words), max(word.x1 for word in words)
    top, bottom = min(word.base for word in words), max(word.base for word in words)
    half = _MIN_GUTTER * size / 2
    crossing: list[list[float]] = [[] for _ in range(int((right - left) / _STEP) + 1)]
    for word in sorted(words, key=lambda word: word.base):
        first = max(0, int((word.x0 - half - left) / _STEP) + 1)
        for index in range(first, min(len(crossing) - 1, int((word.x1 + half - left) / _STEP)) + 1):
            crossing[index].append(word.base)
    for index, bases in enumerate(crossing):
        x = left + index * _STEP
        for above, below in zip([top - 1, *bases], [*bases, bottom + 1], strict=True):
            if below - above >= 1.2 * size and not right - x < 4 * size and not x - left < 4 * size:
                yield Gutter(x, above + 0.1, below - 0.1)


def _prose_bands(strip: Gutter, rows: Sequence[Row], size: float) -> Iterator[list[Row]]:
    """The rows beside a strip, without runs of at least three rows of a table that spans it."""
    inside = [row for row in rows if strip.top <= row.base <= strip.bottom]
    band: list[Row] = []
    cells: list[Row] = []
    for row in inside:
        if _spans_as_table(row, strip.x, size):
            cells.append(row)
            continue
        if len(cells) >= 3:
            if band:
                yield band
            band = []
        else:
            band += cells
        cells = []
        band.append(row)
    if len(cells) < 3:
        band += cells
    if band:
        yield band


def _spans_as_table(row: Row, x: float, size: float) -> bool:
    left, right = row.halves(x)
    if not left.words or not right.words:
        return False
    pieces = [*left.pieces(1.2 * size), *right.pieces(1.2 * size)]
    return len(pieces) >= 3 and not any(piece.is_prose(size) for piece in pieces)


def _highest(row: Row) -> Word:
    return min(row.words, key=lambda word: word.base)


def _lowest(row: Row) -> Word:
    return max(row.words, key=lambda word: word.base)


def _is_river(left: Sequence[Row], right: Sequence[Row], size: float) -> bool:
    """Whether the strip is no wider than spaces between words, which happen to lie below each other."""
    gaps = [after.x0 - before.x1 for before, after in zip(left, right, strict=True) if before.words and after.words]
    spaces = median(b.x0 - a.x1 for row in (*left, *right) for a, b in pairwise(row.words))
    return bool(gaps) and median(gaps) < max(_MIN_GAP * size, _MIN_GAP_SPACES * spaces)


def _is_table(left: Sequence[Row], right: Sequence[Row], size: float) -> bool:
    """Whether the white lines between paragraphs are the same on both sides, as between the rows of a table."""
    gaps, others = _gaps(left, size), _gaps(right, size)
    common = sum(any(min(b, d) - max(a, c) > 0.2 * size for c, d in others) for a, b in gaps)
    return common >= 2 and common >= 0.6 * max(len(gaps), len(others))


def _gaps(rows: Sequence[Row], size: float) -> list[tuple[float, float]]:
    leading = median(below.base - row.base for row, below in pairwise(rows)) or size
    return [(row.base, below.base - size) for row, below in pairwise(rows) if below.base - row.base > 1.25 * leading]
