"""From the words of pages to the text of a document with a box for every word."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from headrace.apps.papers.documents.cleaning import line_end_cuts
from headrace.apps.papers.documents.columns import Gutter, reading_regions
from headrace.apps.papers.documents.lines import Line, line_of, ordered_rows
from headrace.apps.papers.documents.words import Word, median, turned

#: White above a line that begins a paragraph, in lines.
_PARAGRAPH = 1.45


@dataclass(slots=True)
class PageText:
    """The text of a page; for each word where it begins and ends in it, and x0, y0, x1, y1 as displayed."""

    text: str
    boxes: array[float]
    #: Where lines begin whose letters are taller than those of running text, and how tall they are.
    tall: dict[int, float]


def page_lines(words: Sequence[Word], known: Sequence[Gutter] = (), found: list[Gutter] | None = None) -> list[Line]:
    """The lines of a page in reading order; what is turned against most of the page comes last.

    `known` are gutters of other pages; those of this page are added to `found`.
    """
    turns = Counter[int]()
    for word in words:
        turns[word.turn] += len(word.text)
    lines: list[Line] = []
    for turn, _ in turns.most_common():
        level, shown = [], {}
        for word in words:
            if word.turn == turn:
                level.append(back := turned(word, turn))
                shown[id(back)] = word
        is_main = not lines
        regions = reading_regions(level, known, found) if is_main else [level]
        for words_of_region in regions:
            number = lines[-1].region + 1 if lines else 0
            rows = (line_of(row, number, shown) for row in ordered_rows(words_of_region))
            lines += [line for line in rows if line.text]
        if is_main:
            main = turn
    for line in lines:
        line.turn = (line.turn - main) % 360
    return lines


def page_text(lines: Sequence[Line], body: float) -> PageText:
    """Join the lines of a page. `body` is the height of the letters of running text in the document."""
    page = PageText("", array("f"), {})
    leading = _leading(lines)
    for index, line in enumerate(lines):
        if index:
            page.text += _between(lines[index - 1], line, leading)
        if line.size > 1.1 * body:
            page.tall[len(page.text)] = round(line.size, 1)
        _add(page.boxes, line.boxes, len(page.text))
        page.text += line.text
    return page


def join_words(text: str, known: frozenset[str], *offsets: array[int]) -> str:
    """Undo hyphens at line ends, also between columns and pages; the offsets move along. `known` are written words.

    >>> starts = array("L", [0, 8])
    >>> join_words("co-\\nact so", frozenset(), starts), starts.tolist()
    ('coact so', [0, 6])
    """
    while cuts := line_end_cuts(text, known):
        starts = [start for start, _ in cuts]
        removed = [0, *accumulate(end - start for start, end in cuts)]
        for some in offsets:
            for at, offset in enumerate(some):
                index = bisect_right(starts, offset)
                inside = max(0, cuts[index - 1][1] - offset) if index else 0
                some[at] = offset - removed[index] + inside
        edges = [0, *(edge for cut in cuts for edge in cut), len(text)]
        text = "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    return text


def body_size(pages: Sequence[Sequence[Line]]) -> float:
    """The height of the letters that most of the text has."""
    sizes = Counter[float]()
    for lines in pages:
        for line in lines:
            sizes[round(line.size, 1)] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _add(boxes: array[float], more: array[float], offset: int) -> None:
    for at in range(0, len(more), 6):
        boxes.extend((more[at] + offset, more[at + 1] + offset, *more[at + 2 : at + 6]))


def _leading(lines: Sequence[Line]) -> float:
    steps = [b.base - a.base for a, b in pairwise(lines) if a.region == b.region and b.base > a.base]
    return median(steps)


def _between(before: Line, line: Line, leading: float) -> str:
    """What stands between two lines: nothing within a word, else a new line, or an empty one between paragraphs."""
    if before.is_cut:
        return ""
    ended = before.text.endswith((".", "!", "?", ":", "。"))
    if before.region != line.region or before.turn != line.turn:
        # A sentence may run on in the next column.
        return "\n\n" if ended or _is_other_size(before, line) else "\n"
    opens = line.text[0].isupper() or not line.text[0].isalpha()
    wide = line.base - before.base > _PARAGRAPH * leading > 0 and (ended or (opens and len(before.text) < 80))
    return "\n\n" if wide or (opens and _is_other_size(before, line)) else "\n"


def _is_other_size(before: Line, line: Line) -> bool:
    return abs(before.size - line.size) > 0.12 * min(before.size, line.size)
