"""Rows of a page: words that stand on one line, whatever the columns are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.apps.papers.documents.words import Word

#: A line of running text is at least so many letters long, and has so many words if its language separates them.
MIN_PROSE_LETTERS, MIN_PROSE_WORDS = 20, 3


@dataclass(frozen=True, slots=True)
class Row:
    """Words from left to right."""

    base: float
    words: tuple[Word, ...]

    @property
    def x0(self) -> float:
        """Where it begins."""
        return self.words[0].x0

    @property
    def x1(self) -> float:
        """Where it ends."""
        return max(word.x1 for word in self.words)

    @property
    def text(self) -> str:
        """Its words with a space between."""
        return " ".join(word.text for word in self.words)

    def halves(self, x: float) -> tuple[Row, Row]:
        """What stands left and right of x; both keep the base of the row."""
        left = tuple(word for word in self.words if word.x0 + word.x1 < 2 * x)
        return Row(self.base, left), Row(self.base, self.words[len(left) :])

    def pieces(self, gap: float) -> list[Row]:
        """The row cut where two words are further apart than `gap`."""
        pieces: list[list[Word]] = []
        for word in self.words:
            if pieces and word.x0 - pieces[-1][-1].x1 <= gap:
                pieces[-1].append(word)
            else:
                pieces.append([word])
        return [Row(self.base, tuple(piece)) for piece in pieces]

    def is_prose(self, size: float) -> bool:
        """Whether it reads like a line of running text: long enough, more letters than digits, no wide gap."""
        known = [char for char in self.text if char.isalnum()]
        long_enough = sum(word.letters + 1 for word in self.words) >= MIN_PROSE_LETTERS
        long_enough = long_enough and (len(self.words) >= MIN_PROSE_WORDS or any(char > "\u2e7f" for char in known))
        wordy = sum(char.isalpha() for char in known) >= 0.6 * len(known) > 0
        return long_enough and wordy and len(self.pieces(3 * size)) == 1


def rows_of(words: Iterable[Word]) -> list[Row]:
    """The rows of a page from top to bottom. Raised and lowered signs belong to the row they are in."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.base):
        # The tallest word of a row says how far off its line a small sign may stand.
        if rows and word.base - rows[-1][0].base <= 0.4 * max(word.size, rows[-1][0].size):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [Row(base_of(row), tuple(sorted(row, key=lambda word: word.x0 + word.x1))) for row in rows]


def base_of(words: Sequence[Word]) -> float:
    """Where the tallest of some words stands: the others may be raised or lowered."""
    return max(words, key=lambda word: (word.size, word.x1 - word.x0)).base
