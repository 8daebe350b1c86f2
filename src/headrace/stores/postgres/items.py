"""Reading the finished items of a batch in the order they were recorded, without missing one.

Transactions commit out of order, so a cursor may only pass rows below every transaction that is still open
(`settled`). Rows beyond are returned too, because a reader wants them now; they come again until they are settled.
A cursor is `XACT.ORDINAL`; while reading ahead of what is settled it is `SETTLED~AHEAD`, and back at `SETTLED` once
the end was reached.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headrace.model.batch import BatchItem, ItemPage
from headrace.model.errors import InvalidInputError
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.rows import batch_item

_POSITION = r"\d{1,20}\.\d{1,10}"
_CURSOR = re.compile(rf"({_POSITION}|)(?:~({_POSITION}))?")
_BEFORE_ALL = (0, -1)

Position = tuple[int, int]


async def read_items(database: Database, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
    """Do what `Inspect.read_items` promises."""
    settled, ahead = _parse(cursor)
    start = ahead or settled
    rows = await database.fetch("read_items", batch_id=batch_id, xact=str(start[0]), ordinal=start[1], limit=limit)
    items: list[BatchItem] = []
    reading_ahead = ahead is not None
    position = start
    for row in rows:
        position = (int(row["xact"]), row["ordinal"])
        reading_ahead = reading_ahead or not row["settled"]
        if not reading_ahead:
            settled = position
        items.append(batch_item(row, _format(settled, position if reading_ahead else None)))
    return ItemPage(tuple(items), _format(settled, position if reading_ahead and _full(rows, limit) else None))


def _full(rows: Sequence[Any], limit: int) -> bool:
    return len(rows) == limit


def _parse(cursor: str) -> tuple[Position, Position | None]:
    match = _CURSOR.fullmatch(cursor) if cursor.isascii() else None
    if match is None or max(_numbers(cursor), default=0) >= 2**63:
        raise InvalidInputError("cursor", "must be one that an earlier page gave", cursor)
    settled, ahead = match.groups()
    return _position(settled) if settled else _BEFORE_ALL, _position(ahead) if ahead else None


def _numbers(cursor: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", cursor)]


def _position(text: str) -> Position:
    xact, _, ordinal = text.partition(".")
    return int(xact), min(int(ordinal), 2**31 - 1)


def _format(settled: Position, ahead: Position | None) -> str:
    text = "" if settled == _BEFORE_ALL else f"{settled[0]}.{settled[1]}"
    return text if ahead is None else f"{text}~{ahead[0]}.{ahead[1]}"
