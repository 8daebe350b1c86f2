"""A table: what its columns are called, of which kind they are, and its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "long", "status", "number", "percent", "seconds", "case", "cases", "cluster"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Rows hold numbers for numbers, ids for cases and clusters, and words for all else."""

    key: str
    kind: Kind = "text"
    #: False: only the workbook has it, or its text is too long for a page.
    on_page: bool = True
    #: A column of the file itself: its header in place of ours.
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `rows_of` names the column of the cases whose values the first column holds, so figures lead there."""

    name: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]
    total: Sequence[Any] | None = None
    rows_of: str = ""

    def for_page(self) -> Table:
        """Return the table without the columns that only a workbook has."""
        kept = [index for index, column in enumerate(self.columns) if column.on_page]
        columns = tuple(self.columns[index] for index in kept)
        rows = [[row[index] for index in kept] for row in self.rows]
        total = [self.total[index] for index in kept] if self.total is not None else None
        return Table(self.name, columns, rows, total, self.rows_of)


def columns(*keys: str, kind: Kind = "text") -> tuple[Column, ...]:
    """Return columns of one kind."""
    return tuple(Column(key, kind) for key in keys)
