"""What the header of a sheet says of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from headrace.apps.report.ingest.cells import Cell, text_of
from headrace.apps.report.ingest.labels import meaning_of

#: A header has at least so many fields.
MIN_FIELDS = 2


class Gives(StrEnum):
    """How a column of results counts."""

    #: As one of several rounds: the last that says something is the result.
    ROUND = "round"
    #: As a round of those alone that were tested again.
    RETEST = "retest"
    #: As one of several of the same time, each for a system or the like: the worst is the result.
    BESIDE = "beside"
    #: Its header is the worse one: it can only contradict.
    OTHER = "other"


@dataclass(frozen=True)
class Column:
    """One column: its header as people read it and told apart, the field it gives if it gives one, and its unit."""

    index: int
    #: A second one of a name has a number behind it, which the label has not.
    header: str
    label: str
    field: str | None = None
    unit: float | None = None
    #: None: no results.
    gives: Gives | None = None


@dataclass(frozen=True)
class Header:
    """The header of a sheet: its rows from 0, first and last, and its columns."""

    first: int
    last: int
    columns: tuple[Column, ...]

    @property
    def fields(self) -> dict[str, Column]:
        """The columns that give a field, by field."""
        return {column.field: column for column in self.columns if column.field}

    @property
    def rounds(self) -> tuple[Column, ...]:
        """The columns that give the result, in the order in which they were filled."""
        ordered = [column for column in self.columns if column.gives in (Gives.ROUND, Gives.BESIDE)]
        return (*ordered, *(column for column in self.columns if column.gives is Gives.RETEST))

    @property
    def contradicting(self) -> tuple[Column, ...]:
        """The columns of results that do not count."""
        return tuple(column for column in self.columns if column.gives is Gives.OTHER)

    def is_repeated_in(self, row: Sequence[Cell]) -> bool:
        """Whether a row says what the header says, as printed sheets do on every page."""
        texts = {column.index: text_of(row[column.index]) for column in self.columns if column.index < len(row)}
        given = [column for column in self.columns if texts.get(column.index)]
        same = others = 0
        for column in given:
            says_same = _says_same(texts[column.index], column)
            same, others = same + says_same, others + (not says_same)
            # Most rows are none, and half of their cells are enough to know.
            if 2 * others >= len(given):
                return False
        return same >= MIN_FIELDS


def _says_same(text: str, column: Column) -> bool:
    if text == column.label or column.field is None:
        return text == column.label
    meaning = meaning_of(text)
    return meaning is not None and meaning.field == column.field
