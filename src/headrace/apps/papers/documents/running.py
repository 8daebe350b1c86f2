"""Headers, footers, page numbers and stamps in the margin: lines that are no part of the text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.apps.papers.documents.lines import Line

#: So many rows at the top and at the bottom of a page may be running lines.
_DEPTH = 3
_MIN_PAGES = 3
#: More than this share of the pages have them.
_SHARE = 0.6
#: So far apart two lines may stand and be at the same place, in points.
_SAME_PLACE = 3.0
_CAPTION = re.compile(
    r"(?:table|fig(?:ure)?|box|scheme|chart|appendix|chapter|section|part|step|表|图)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Edge:
    """The outermost row of a page."""

    page: int
    base: float
    text: str
    lines: tuple[Line, ...]
    #: Whether at least an empty line lies between it and the text.
    is_apart: bool

    @property
    def shape(self) -> str:
        return re.sub(r"\d+", "#", " ".join(self.text.split()).casefold())


def without_running_lines(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Remove what most pages share at their edges, also if left and right pages differ, or only its page number counts.

    At least three pages must agree; two do where they hold the numbers of their pages, apart from the text.
    """
    kept = [list(page) for page in pages]
    for end in (0, -1):
        for _ in range(_DEPTH):
            edges = [edge for number, lines in enumerate(kept) if (edge := _edge(number, lines, end)) is not None]
            dropped = {edge.page: edge.lines for edge in _running(edges)}
            if not dropped:
                break
            for number, lines in dropped.items():
                kept[number] = [line for line in kept[number] if not any(line is other for other in lines)]
    return _without_stamps(kept)


def _edge(number: int, lines: Sequence[Line], end: int) -> _Edge | None:
    """The highest (`end` 0) or lowest (-1) row of a page: lines of all its columns on one height."""
    level = [line for line in lines if line.turn == 0]
    if not level:
        return None
    outermost = (min if end == 0 else max)(level, key=lambda line: line.base)
    row = [line for line in level if abs(line.base - outermost.base) < 0.4 * outermost.size]
    row.sort(key=lambda line: line.x0)
    white = min((abs(line.base - outermost.base) for line in level if line not in row), default=0.0)
    is_apart = white > 2 * outermost.size
    return _Edge(number, outermost.base, " ".join(line.text for line in row), tuple(row), is_apart)


def _running(edges: Sequence[_Edge]) -> list[_Edge]:
    """Those that are running lines."""
    if len(edges) < _MIN_PAGES:
        # Of two pages only page numbers can be known, and only where they are no numbers of tables or figures.
        apart = [edge for edge in edges if edge.is_apart and not _CAPTION.match(edge.text)]
        return found if len(found := _numbered(apart)) == 2 else []
    by_shape: dict[str, list[_Edge]] = defaultdict(list)
    for edge in edges:
        if edge.shape:
            by_shape[edge.shape].append(edge)
    most = max(by_shape.values(), key=len, default=[])
    alternating = [edge for group in by_shape.values() for edge in _alternating(group)]
    for found in (most, _numbered(edges), alternating):
        if len(found) >= _MIN_PAGES and len(found) > _SHARE * len(edges):
            return found
    return []


def _alternating(group: Sequence[_Edge]) -> list[_Edge]:
    """Those of one shape that stand at one place, all on left or all on right pages."""
    odd = Counter(edge.page % 2 for edge in group).most_common(1)[0][0]
    same = [edge for edge in group if edge.page % 2 == odd and abs(edge.base - group[0].base) <= _SAME_PLACE]
    return same if len(same) >= 2 else []


def _numbered(edges: Sequence[_Edge]) -> list[_Edge]:
    """Those at one place that hold the number of their page, counted from anywhere."""
    votes = Counter((offset, round(edge.base / _SAME_PLACE)) for edge in edges for offset in _offsets(edge))
    if not votes:
        return []
    best, place = votes.most_common(1)[0][0]
    return [
        edge for edge in edges if best in _offsets(edge) and abs(edge.base - place * _SAME_PLACE) <= 1.5 * _SAME_PLACE
    ]


def _offsets(edge: _Edge) -> set[int]:
    return {int(number) - edge.page for number in re.findall(r"(?<![\d.,])\d{1,6}(?![\d.,]\d)", edge.text)}


def _without_stamps(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Without turned lines that most pages share: who downloaded it, and when."""
    counts = Counter(text for lines in pages for text in {line.text for line in _turned(lines)})
    common = {text for text, count in counts.items() if count >= _MIN_PAGES and count > _SHARE * len(pages)}
    return [[line for line in lines if line.turn == 0 or line.text not in common] for lines in pages]


def _turned(lines: Sequence[Line]) -> Iterator[Line]:
    return (line for line in lines if line.turn != 0)
