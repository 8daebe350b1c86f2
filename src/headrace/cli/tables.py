"""How a table fits a terminal: what is in a cell is never broken, columns give way, and at last each row is a block.

Columns that matter least are left out first. Messages are wrapped between words, lists of names between names.
Where the rest is still too wide, each row becomes a block of one line per field.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Blanks between two columns.
GAP = 2
#: Prose is not set narrower than this; only words longer than that are broken.
LEAST_PROSE, LONGEST_WORD = 16, 40


@dataclass(frozen=True, slots=True)
class Give:
    """How the columns of a table give way, by their titles.

    >>> Give(first=("QUEUE", "LAST"), prose=("MESSAGE",)).first
    ('QUEUE', 'LAST')
    """

    #: left out where the terminal is too narrow, in this order; a table may lack some of them
    first: tuple[str, ...] = ()
    #: messages, which may be wrapped between words
    prose: tuple[str, ...] = ()
    #: lists of names, which may be wrapped between names
    lists: tuple[str, ...] = ()

    def least(self, title: str, texts: Sequence[str]) -> int:
        """Return how narrow a column with these texts may be set."""
        wide = max(map(cell_width, [title, *texts]))
        if title not in (*self.prose, *self.lists):
            return wide
        word = max((cell_width(word) for text in texts for word in text.split()), default=0)
        return min(wide, max(min(word, LONGEST_WORD) if title in self.prose else word, cell_width(title), LEAST_PROSE))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table that fits: the widths of the columns that are shown, by their places, and what is left out."""

    widths: dict[int, int]
    left_out: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How wide the table is."""
        return sum(self.widths.values()) + GAP * (len(self.widths) - 1)


def cell_width(text: str) -> int:
    """Return how many columns of a terminal the widest line of `text` takes."""
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")), default=0)


def fit(titles: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, give: Give) -> Fitted | None:
    """Return how a table fits into `width` columns (None: there is no bound), or None where it must be set as blocks.

    Of the columns that may give way those without any value are left out first.

    >>> fit(("NAME", "QUEUE"), [("nightly", "slow")], width=10, give=Give(first=("QUEUE",)))
    Fitted(widths={0: 7}, left_out=('QUEUE',))
    >>> fit(("NAME", "QUEUE"), [("nightly", "slow")], width=6, give=Give(first=("QUEUE",))) is None
    True
    """
    bound = math.inf if width is None else width
    natural = [max(map(cell_width, column)) for column in zip(titles, *rows, strict=True)]
    least = [give.least(title, [row[place] for row in rows]) for place, title in enumerate(titles)]
    texts = dict(zip(titles, zip(*rows, strict=True), strict=False))
    order = sorted((title for title in give.first if title in titles), key=lambda title: any(texts.get(title, ())))
    for count in range(len(order) + 1):
        kept = [place for place, title in enumerate(titles) if title not in order[:count]]
        room = bound - sum(least[place] for place in kept) - GAP * (len(kept) - 1)
        if room >= 0:
            left_out = tuple(title for title in titles if title in order[:count])
            return Fitted(_widened(kept, natural=natural, least=least, room=room), left_out)
    return None


def _widened(kept: Sequence[int], *, natural: Sequence[int], least: Sequence[int], room: float) -> dict[int, int]:
    """Return the widths of the columns; what may be wrapped takes the room there is."""
    widths = {}
    for place in kept:
        taken = int(min(natural[place] - least[place], room))
        widths[place] = least[place] + taken
        room -= taken
    return widths


def note_of(left_out: Sequence[str]) -> list[str]:
    """Return what is said below a table that lacks columns, in parts that are not broken.

    >>> note_of(("LAST JOB", "QUEUE"))
    ['Not shown:', 'LAST JOB,', 'QUEUE', '(--json or a wider terminal shows all)']
    """
    titles = [f"{title}," for title in left_out[:-1]] + list(left_out[-1:])
    return ["Not shown:", *titles, "(--json or a wider terminal shows all)"]


def packed(parts: Iterable[str], width: int) -> list[str]:
    """Return lines of whole parts, each line at most `width` wide where its parts allow that.

    >>> packed(["one", "two or", "three"], 10)
    ['one two or', 'three']
    """
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]} {part}" if lines else part
        lines[-1:] = [longer] if not lines or cell_width(longer) <= width else [lines[-1], part]
    return lines
