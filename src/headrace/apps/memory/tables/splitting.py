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


def split(rows: Iterable[Row], most_tokens: int) -> list[list[Row]]:
    """Return the rows in parts of at most `most_tokens`, as few as keep their order.

    A row that has more by itself is a part of its own.

    >>> rows = [Row(UUID(int=n), tokens) for n, tokens in enumerate([3, 4, 9, 2, 2, 2])]
    >>> [[row.tokens for row in part] for part in split(rows, 6)]
    [[3], [4], [9], [2, 2, 2]]
    """
    parts: list[list[Row]] = []
    room = 0
    for row in rows:
        if not parts or row.tokens > room:
            parts.append([])
            room = most_tokens
        parts[-1].append(row)
        room -= row.tokens
    return parts
