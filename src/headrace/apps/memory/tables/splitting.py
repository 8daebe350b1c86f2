"""How a buffer becomes flushes: in the order of time, and nothing of it is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a buffer."""

    blob_id: UUID
    tokens: int


def split(rows: Iterable[Row], most_tokens: int, full: int | None = None) -> list[list[Row]]:
    """Return the rows in parts of at most `most_tokens`, in their order; nothing is left out.

    `full`: a part that has more than so many tokens is full, and ends. So where a part ends follows from the rows
    alone, and not from when one looked at them; the last part may be short of it. A row with more than `most_tokens` by
    itself is a part of its own.

    >>> rows = [Row(UUID(int=n), tokens) for n, tokens in enumerate([3, 4, 9, 2, 2, 2])]
    >>> [[row.tokens for row in part] for part in split(rows, 6)]
    [[3], [4], [9], [2, 2, 2]]
    >>> [[row.tokens for row in part] for part in split(rows, 12, full=4)]
    [[3, 4], [9], [2, 2, 2]]
    """
    parts: list[list[Row]] = []
    tokens, is_over = 0, True
    for row in rows:
        if is_over or tokens + row.tokens > most_tokens:
            parts.append([])
            tokens = 0
        parts[-1].append(row)
        tokens += row.tokens
        is_over = full is not None and tokens > full
    return parts


def is_full(part: Iterable[Row], full: int) -> bool:
    """Whether a part has more than `full` tokens."""
    return sum(row.tokens for row in part) > full
