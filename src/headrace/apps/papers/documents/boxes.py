"""Where the characters of a document stand on its pages: a box per word, kept in arrays of numbers."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle on a page as it is displayed, in points (1/72 inch) from its upper left corner; y grows downwards."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


class WordBoxes:
    """The boxes of words by the characters they cover: 26 bytes a word.

    >>> boxes = WordBoxes()
    >>> boxes.add(0, 4, Box(1, 10, 20, 50, 30))
    >>> boxes.add(5, 7, Box(1, 55, 20, 75, 30))
    >>> boxes.between(2, 7)
    [Box(page=1, x0=30.0, y0=20.0, x1=75.0, y1=30.0)]
    """

    __slots__ = ("_corners", "_ends", "_pages", "_starts")

    def __init__(self) -> None:
        self._starts = array("I")
        self._ends = array("I")
        self._pages = array("H")
        self._corners = array("f")

    def __len__(self) -> int:
        """How many words have a box."""
        return len(self._starts)

    def add(self, start: int, end: int, box: Box) -> None:
        """Note the box of the characters from `start` to `end`. Words come in the order of the text."""
        self._starts.append(start)
        self._ends.append(end)
        self._pages.append(box.page)
        self._corners.extend(box[1:])

    def between(self, start: int, end: int) -> list[Box]:
        """The boxes of the characters from `start` to `end`: one for each stretch of a line."""
        lines: list[Box] = []
        for box in self._words(start, end):
            if lines and _on_one_line(lines[-1], box):
                last = lines[-1]
                lines[-1] = Box(box.page, last.x0, min(last.y0, box.y0), box.x1, max(last.y1, box.y1))
            else:
                lines.append(box)
        return lines

    def _words(self, start: int, end: int) -> Iterator[Box]:
        for index in range(bisect_right(self._ends, start), bisect_left(self._starts, end)):
            first, last = self._starts[index], self._ends[index]
            x0, y0, x1, y1 = self._corners[4 * index : 4 * index + 4]
            # Part of a word: its letters are taken to be equally wide.
            width = (x1 - x0) / (last - first)
            left = x0 + width * max(0, start - first)
            right = x1 - width * max(0, last - end)
            yield Box(self._pages[index], *(round(value, 2) for value in (left, y0, right, y1)))


def _on_one_line(last: Box, box: Box) -> bool:
    if box.page != last.page or box.x0 < last.x1 - 1:
        return False
    height = min(last.y1 - last.y0, box.y1 - box.y0)
    overlap = min(last.y1, box.y1) - max(last.y0, box.y0)
    # A gap as wide as three letters is a new cell or another column.
    return overlap >= 0.5 * height and box.x0 - last.x1 <= 3 * max(height, 1.0)
