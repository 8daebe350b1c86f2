"""Cut a text into parts so that every quote can be marked, also where quotes overlap or run over pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

#: Characters, from and to.
Span = tuple[int, int]
#: Plain text, or text with the numbers of the marks that it belongs to.
Part = str | tuple[str, tuple[int, ...]]


def cut(text: str, marks: Sequence[Span], span: Span) -> list[Part]:
    """The parts of `text` within a span, in order; joined they are that text.

    >>> cut("abcdef", [(1, 4), (3, 5)], (0, 6))
    ['a', ('bc', (0,)), ('d', (0, 1)), ('e', (1,)), 'f']
    """
    start, end = span
    near = [(number, mark) for number, mark in enumerate(marks) if mark[0] < end and mark[1] > start]
    inner = {at for _, mark in near for at in mark if start < at < end}
    edges = sorted({start, end, *inner})
    parts: list[Part] = []
    for left, right in pairwise(edges):
        numbers = tuple(number for number, mark in near if mark[0] <= left and right <= mark[1])
        parts.append((text[left:right], numbers) if numbers else text[left:right])
    return parts


def around(marks: Iterable[Span], reach: int, end: int) -> list[Span]:
    """The surroundings of marks, `reach` characters to both sides, in order and without overlap.

    >>> around([(50, 60), (0, 5), (62, 70)], 10, 100)
    [(0, 15), (40, 80)]
    """
    spans: list[Span] = []
    for start, stop in sorted(marks):
        left, right = max(0, start - reach), min(end, stop + reach)
        if spans and left <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], right))
        else:
            spans.append((left, right))
    return spans


def within(spans: Iterable[Span], span: Span) -> list[Span]:
    """What of some spans lies within another.

    >>> within([(0, 15), (40, 80)], (10, 50))
    [(10, 15), (40, 50)]
    """
    start, end = span
    return [(max(left, start), min(right, end)) for left, right in spans if left < end and right > start]
