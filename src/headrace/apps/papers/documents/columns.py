"""In which order the parts of a page are read: gutters between columns are found, and the page is cut along them.

A gutter is a strip that no word crosses, with prose on both sides. What crosses it, such as a title or a wide table,
bounds it above or below. All conditions guard against one error: cutting a page of one column, or a table, in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from headrace.apps.papers.documents.rows import Row, base_of, rows_of
from headrace.apps.papers.documents.words import Word, median

#: Points between two places at which a gutter is looked for.
_STEP = 2.0
#: A gutter is at least so wide, in heights of the letters.
_MIN_GUTTER = 0.35
#: Its columns have at least so many lines, unless the page or others have a gutter there already.
_MIN_LINES = 4
#: Between the columns of a row there is at least so much space, in heights of the letters …
_MIN_GAP = 0.7
#: … and so many common spaces. Spaces happen to lie below each other in a few lines, not in many.
_MIN_GAP_SPACES, _MIN_GAP_SPACES_LONG, _LONG = 2.2, 1.3, 15
#: White across all columns that is higher than this ends them, in heights of the letters.
_MAX_WHITE = 2.6
#: A line with less space than this at a strip runs across it.
_MIN_SPACE_ACROSS = 0.6
#: A column has at least this share of the page's width.
_MIN_SHARE = 0.2
#: Half of its lines fill this share of it.
_MIN_FILL = 0.6
#: So far from the gutter of other pages a gutter is taken for the same, in points.
_SAME_GUTTER = 8.0
#: So many of the tallest strips of a page are looked at.
_CANDIDATES = 12
_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Gutter:
    """An empty strip: how wide it is, and from where to where it reaches down the page."""

    x0: float
    x1: float
    top: float
    bottom: float

    @property
    def x(self) -> float:
        """Its middle."""
        return (self.x0 + self.x1) / 2

    def holds(self, other: Gutter) -> bool:
        """Whether another one is hardly more than a part of this one."""
        near = other.x0 - self.x1 < 2 * _STEP and self.x0 - other.x1 < 2 * _STEP
        return near and self.top <= other.top + 1 and self.bottom >= other.bottom - 1


def reading_regions(
    words: Sequence[Word], known: Sequence[Gutter] = (), found: list[Gutter] | None = None
) -> list[list[Word]]:
    """The words of a page in regions, in the order in which they are read; within a region in the order given.

    `known` are the gutters of other pages of the document; those of this page are added to `found`.
    """
    if not words:
        return []
    width = max(word.x1 for word in words) - min(word.x0 for word in words)
    gutters: list[Gutter] = []
    regions = _Page(width, known, gutters).cut(list(words), 0)
    if gutters:
        # What is a gutter in one part of the page is one in others too, with less evidence.
        regions = _Page(width, [*known, *gutters], []).cut(list(words), 0)
    if found is not None:
        found += gutters
    return regions


@dataclass(frozen=True, slots=True)
class _Split:
    """A row beside a strip."""

    row: Row
    left: Row
    right: Row


@dataclass(slots=True)
class _Page:
    width: float
    known: Sequence[Gutter]
    found: list[Gutter]
    #: How many strips may still be looked at closely: a form has very many, and columns are found early.
    patience: int = 120

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
        strips = sorted(_strips(words, size, self.known), key=lambda strip: strip.top - strip.bottom)
        looked_at: list[Gutter] = []
        for strip in strips:
            if any(other.holds(strip) for other in looked_at):
                continue
            if len(looked_at) >= _CANDIDATES or self.patience <= 0:
                break
            looked_at.append(strip)
            self.patience -= 1
            gutter = self._accepted(strip, rows, size)
            if gutter is not None:
                return gutter
        return None

    def _accepted(self, strip: Gutter, rows: Sequence[Row], size: float) -> Gutter | None:
        known = _known_at(strip.x0, strip.x1, self.known)
        for band in _prose_bands(strip, rows, size):
            lefts = [split.left for split in band if split.left.words]
            rights = [split.right for split in band if split.right.words]
            if min(len(lefts), len(rights)) < (_MIN_LINES if known is None else 1):
                continue
            if _is_river(band, size) or _is_table(lefts, rights, size):
                continue
            ends, begins = max(row.x1 for row in lefts), min(row.x0 for row in rights)
            if known is not None:
                # Where columns end and begin anyway, short lines are columns too.
                in_place = ends < known.x0 + 3 and abs(begins - known.x1) < 3
                fits = _is_prose([*lefts, *rights], size, share=0.3 if in_place else 0.5)
            else:
                fits = all(self._is_new_column(side, size) for side in (lefts, rights))
            if fits:
                top = min(word.base for word in band[0].row.words)
                bottom = max(word.base for word in band[-1].row.words)
                return Gutter(ends, begins, top - 0.1, bottom + 0.1)
        return None

    def _is_new_column(self, rows: Sequence[Row], size: float) -> bool:
        """Whether rows beside a strip look like a column on a page that has not shown any."""
        x0, x1 = min(row.x0 for row in rows), max(row.x1 for row in rows)
        if x1 - x0 < _MIN_SHARE * self.width:
            return False
        fill = median((row.x1 - row.x0) / (x1 - x0) for row in rows)
        if fill >= _MIN_FILL and _is_prose(rows, size):
            return True
        # Two columns whose lines stand at different heights: each fills half of this side.
        wide_enough = x1 - x0 > 2 * _MIN_SHARE * self.width and len(rows) >= 2 * _MIN_LINES
        return wide_enough and self._gutter([word for row in rows for word in row.words]) is not None


def _is_prose(rows: Sequence[Row], size: float, *, share: float = 0.5) -> bool:
    return sum(row.is_prose(size) for row in rows) >= share * len(rows)


def _strips(words: Sequence[Word], size: float, known: Sequence[Gutter]) -> Iterator[Gutter]:
    """Strips that no word crosses, between the words that do."""
    left, right = min(word.x0 for word in words) + 4 * size, max(word.x1 for word in words) - 4 * size
    top, bottom = min(word.base for word in words), max(word.base for word in words)
    half = _MIN_GUTTER * size / 2
    crossing: list[list[float]] = [[top - size] for _ in range(max(0, int((right - left) / _STEP) + 1))]
    for word in sorted(words, key=lambda word: word.base):
        first = max(0, int((word.x0 - half - left) / _STEP) + 1)
        for index in range(first, min(len(crossing) - 1, int((word.x1 + half - left) / _STEP)) + 1):
            crossing[index].append(word.base)
    before: dict[tuple[float, float], Gutter] = {}
    for index, bases in enumerate(crossing):
        x = left + index * _STEP
        least = (1.6 if _known_at(x, x, known) else 3.5) * size
        now: dict[tuple[float, float], Gutter] = {}
        for above, below in pairwise([*bases, bottom + size]):
            if below - above >= least:
                # Neighbours between the same lines are one strip.
                begun = before.pop((above, below), None)
                now[above, below] = Gutter(begun.x0 if begun else x, x, above + 0.1, below - 0.1)
        yield from before.values()
        before = now
    yield from before.values()


def _known_at(x0: float, x1: float, known: Sequence[Gutter]) -> Gutter | None:
    return next((gutter for gutter in known if x0 - _SAME_GUTTER <= gutter.x <= x1 + _SAME_GUTTER), None)


def _prose_bands(strip: Gutter, rows: Sequence[Row], size: float) -> Iterator[list[_Split]]:
    """The rows beside a strip, without lines that run across it and without a table that spans it."""
    band: list[_Split] = []
    inside = (_Split(row, *row.halves(strip.x)) for row in rows if strip.top <= row.base <= strip.bottom)
    for (across, as_cells), group in groupby(inside, lambda split: _crossing(split, size)):
        some = list(group)
        # A few rows of short pieces are ends of paragraphs; from three on they are a table.
        if not across and not (as_cells and len(some) >= 3):
            band += some
        elif band:
            yield from _without_wide_gaps(band, size)
            band = []
    yield from _without_wide_gaps(band, size)


def _without_wide_gaps(band: Sequence[_Split], size: float) -> Iterator[list[_Split]]:
    """Cut where all columns are white: above and below lies a picture, or one of them is a header."""
    part: list[_Split] = []
    for split in band:
        if part and split.row.base - part[-1].row.base > _MAX_WHITE * size:
            yield part
            part = []
        part.append(split)
    if part:
        yield part


def _crossing(split: _Split, size: float) -> tuple[bool, bool]:
    """Whether a row runs on across a strip, and whether its cells lie on both sides of it."""
    if not split.left.words or not split.right.words:
        return False, False
    before, after = max(split.left.words, key=lambda word: word.x1), split.right.words[0]
    # No word of it crosses, but the gap is a space like others.
    across = after.x0 - before.x1 < _MIN_SPACE_ACROSS * max(before.size, after.size)
    pieces = [*split.left.pieces(1.2 * size), *split.right.pieces(1.2 * size)]
    return across, len(pieces) >= 3 and not any(piece.is_prose(size) for piece in pieces)


def _is_river(band: Sequence[_Split], size: float) -> bool:
    """Whether the strip is no wider than spaces between words, which happen to lie below each other."""
    gaps = [split.right.x0 - split.left.x1 for split in band if split.left.words and split.right.words]
    sides = [row for split in band for row in (split.left, split.right)]
    spaces = median(after.x0 - before.x1 for row in sides for before, after in pairwise(row.words))
    wider = _MIN_GAP_SPACES_LONG if len(gaps) >= _LONG else _MIN_GAP_SPACES
    return bool(gaps) and median(gaps) < max(_MIN_GAP * size, wider * spaces)


def _is_table(left: Sequence[Row], right: Sequence[Row], size: float) -> bool:
    """Whether the white lines between paragraphs are the same on both sides, as between the rows of a table."""
    gaps, others = _gaps(left, size), _gaps(right, size)
    common = sum(any(min(b, d) - max(a, c) > 0.2 * size for c, d in others) for a, b in gaps)
    return common >= 2 and common >= 0.6 * max(len(gaps), len(others))


def _gaps(rows: Sequence[Row], size: float) -> list[tuple[float, float]]:
    # Lines of two columns may stand at slightly different heights, so each side has bases of its own.
    bases = [base_of(row.words) for row in rows]
    leading = median(below - above for above, below in pairwise(bases)) or size
    return [(above, below - size) for above, below in pairwise(bases) if below - above > 1.25 * leading]
