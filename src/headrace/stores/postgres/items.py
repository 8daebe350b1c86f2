"""Reading the finished items of a batch in the order they were recorded, without missing one.

Transactions commit out of order, so a cursor only passes rows below every transaction that is still open (`settled`).
Rows beyond are returned too, because a reader wants them now; they are returned again until the cursor has passed
them. A reader that meets more of them than its limit raises the limit. A cursor is `XACT:ORDINAL` of a row.
"""

from __future__ import annotations

import re
from uuid import UUID

from headrace.model.batch import BatchItem, ItemPage
from headrace.model.errors import InvalidInputError
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.rows import batch_item

_CURSOR = re.compile(r"([0-9]{1,18}):([0-9]{1,9})")


async def read_items(database: Database, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
    """Do what `Inspect.read_items` promises."""
    xact, ordinal = _parse(cursor)
    rows = await database.fetch("read_items", batch_id=batch_id, xact=xact, ordinal=ordinal, limit=limit)
    items: list[BatchItem] = []
    for row in rows:
        # The order of rows is the order of transactions: behind a row that is not settled none is.
        cursor = f"{row['xact']}:{row['ordinal']}" if row["settled"] else cursor
        items.append(batch_item(row, cursor))
    return ItemPage(tuple(items), cursor)


def _parse(cursor: str) -> tuple[str, int]:
    if not cursor:
        return "0", -1
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInputError("cursor", "must be one that an earlier page gave", cursor)
    return match[1], int(match[2])
