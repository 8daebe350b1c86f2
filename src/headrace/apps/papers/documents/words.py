"""Words with their places, as the layout of a page sees them. No PDF library in here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: What a raised sign is written as. 10 with a small raised 2 is 10², not 102.
RAISED = str.maketrans("0123456789+-−–=()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾")


@dataclass(slots=True)
class Word:
    """Characters between two spaces. Points from the upper left corner of the page as displayed; y grows downwards."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    #: The line the letters stand on, as a distance that grows downwards to someone who reads it.
    base: float
    #: Height of the font, ascenders and descenders included.
    size: float
    #: Whether the file has a space before it.
    spaced: bool = True
    #: Degrees by which it is turned, clockwise: 0, 90, 180 or 270.
    turn: int = 0

    @property
    def letters(self) -> int:
        """How wide it is in letters; a Chinese character counts twice."""
        return sum(2 if char > "\u2e7f" else 1 for char in self.text)


def turned(word: Word, turn: int) -> Word:
    """The word where it is on the page once that is turned back by `turn` degrees, so that its lines run level.

    >>> turned(Word("up", 10, 100, 20, 140, 20, 10, turn=270), 270).x0
    -140
    """
    if turn == 90:
        corners = (word.y0, -word.x1, word.y1, -word.x0)
    elif turn == 180:
        corners = (-word.x1, -word.y1, -word.x0, -word.y0)
    elif turn == 270:
        corners = (-word.y1, word.x0, -word.y0, word.x1)
    else:
        return word
    return Word(word.text, *corners, base=word.base, size=word.size, spaced=word.spaced, turn=turn)


def is_raised(height: float, base: float, *, on: Word) -> bool:
    """Whether a sign of that height, standing at `base`, is an exponent or a note mark to the word `on`."""
    return height < 0.85 * on.size and 0.12 * on.size < on.base - base < 0.9 * on.size


def median(values: Iterable[float]) -> float:
    """The middle one of the values; 0 of none."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0
