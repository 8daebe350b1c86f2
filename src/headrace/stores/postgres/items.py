"""Reading the finished items of a batch in the order they were recorded, without missing one or giving it twice.

Transactions commit out of order: behind a row that is there, rows before it may still appear while an older transaction
is open. So a reader goes through what one snapshot of the server has, and then through what a newer one has besides.
Where that matters a cursor says so: `PLACE/WITHIN/KNOWN`, the last row that was read (`XACT:ORDINAL`), the snapshot
that is being read, and the one that was read whole. Else it is the place alone, as that of an item is: nothing can
appear before it any more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from headrace.model.batch import BatchItem, ItemPage
from headrace.model.errors import InvalidInputError
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.rows import batch_item

_PLACE = r"([0-9]{1,18}):(-1|[0-9]{1,9})"
_SNAPSHOT = r"([0-9]{1,18}:[0-9]{1,18}:(?:[0-9]{1,18}(?:,[0-9]{1,18})*)?)?"
_CURSOR = re.compile(rf"{_PLACE}(?:/{_SNAPSHOT}/{_SNAPSHOT})?", re.ASCII)


async def read_items(database: Database, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
    """Do what `Inspect.read_items` promises."""
    mark, items = _Mark.parse(cursor), list[BatchItem]()
    while True:
        wanted, resumed = limit - len(items), mark.within is not None
        rows = await database.fetch("read_items", batch_id=batch_id, limit=wanted, **mark.facts())
        items += mark.items(rows)
        mark = mark.after(rows, whole=len(rows) < wanted)
        # Behind what an older snapshot has comes what there is now.
        if not (resumed and len(rows) < wanted):
            return ItemPage(tuple(items), str(mark))


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Which transactions had ended at an instant: those below `xmin` all, of those below `xmax` all but `open`."""

    xmin: int
    xmax: int
    open: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return a snapshot as the server writes it. Raises ValueError for what it would not take."""
        xmin, xmax, among = text.split(":")
        found = cls(int(xmin), int(xmax), tuple(map(int, among.split(","))) if among else ())
        # In order, each once; the first one may be the first that is open.
        behind = (*found.open, found.xmax)
        if not 1 <= found.xmin <= behind[0] or list(behind) != sorted(set(behind)):
            raise ValueError(text)
        return found

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, self.open))}"


@dataclass(frozen=True, slots=True)
class _Mark:
    """How far a reader is: what `known` has was read, and of `within`, or else of what is there now, up to `place`."""

    place: tuple[int, int] = (0, -1)
    within: _Snapshot | None = None
    known: _Snapshot | None = None

    @classmethod
    def parse(cls, cursor: str) -> Self:
        """Return what a cursor says. Raises InvalidInputError."""
        if not cursor:
            return cls()
        match = _CURSOR.fullmatch(cursor)
        try:
            if match is None:
                raise ValueError
            within, known = (_Snapshot.parse(text) if text else None for text in match.group(3, 4))
            return cls((int(match[1]), int(match[2])), within, known)
        except ValueError:
            raise InvalidInputError("cursor", "must be one that an earlier page gave", cursor) from None

    def __str__(self) -> str:
        place = "" if self.place == (0, -1) else f"{self.place[0]}:{self.place[1]}"
        if self.within is None and self.known is None:
            return place
        return f"{self.place[0]}:{self.place[1]}/{self.within or ''}/{self.known or ''}"

    def facts(self) -> dict[str, Any]:
        """Return what the statement is told."""
        within, known = (None if one is None else str(one) for one in (self.within, self.known))
        return {"xact": str(self.place[0]), "ordinal": self.place[1], "within": within, "known": known}

    def items(self, rows: Sequence[Any]) -> list[BatchItem]:
        """Return rows as items, each with the last place before or at it that nothing can appear before."""
        if not rows:
            return []
        xmin = _Snapshot.parse(rows[0]["snapshot"]).xmin
        settled = self.place if self.place[0] < xmin else (xmin, -1)
        items = []
        for row in rows:
            settled = place if (place := _place(row))[0] < xmin else settled
            items.append(batch_item(row, str(_Mark(settled))))
        return items

    def after(self, rows: Sequence[Any], *, whole: bool) -> _Mark:
        """Return the mark behind rows that were read; `whole`: the snapshot that was read has no more."""
        if not rows:
            return self if self.within is None else _behind(self.within)
        within, last = _Snapshot.parse(rows[0]["snapshot"]), _place(rows[-1])
        settled = last[0] < within.xmin
        known = self.known if self.known is not None and last[0] < self.known.xmax else None
        if settled and (known is None or not whole):
            return _Mark(last, None, known)
        return _behind(within) if whole else replace(self, place=last, within=within)


def _behind(snapshot: _Snapshot) -> _Mark:
    """Return the mark of who has read all that a snapshot has."""
    return _Mark((snapshot.xmin, -1), None, snapshot if snapshot.xmin < snapshot.xmax else None)


def _place(row: Any) -> tuple[int, int]:
    return int(row["xact"]), row["ordinal"]
