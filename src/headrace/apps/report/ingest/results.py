"""The result of a case: where it was tested in several rounds, a sheet has a column of results for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.apps.report.data.cases import FAILING, Status
from headrace.apps.report.ingest.cells import Cell, is_blank, text_of
from headrace.apps.report.ingest.columns import Column, Gives, Header
from headrace.apps.report.ingest.values.levels import status_of

#: Of several results the first of these is the worst: what did not pass everywhere did not pass.
WORST = (Status.FAILED, Status.BLOCKED, None, Status.SKIPPED, Status.PASSED)
#: Cells of these alone say nothing.
_DASHES = "-–—―－/\\_ "


class Result(NamedTuple):
    """What a row says of its result: None where no synonym explains it."""

    status: Status | None
    #: The column that says it.
    column: Column | None
    #: What the columns say, where they differ.
    differing: str = ""


def result_of(row: Sequence[Cell], header: Header) -> Result:
    """Return the result of a row: what the last round says that says something."""
    said = [one for column in header.rounds if (one := _said(row, column))]
    status, column = _counting(said) if said else (None, header.fields.get("status"))
    against = [
        one
        for other in header.contradicting
        if status is Status.PASSED and (one := _said(row, other)) and one.status in FAILING
    ]
    differs = against or len({one.status for one in said}) > 1
    shown = " | ".join(text_of(row[one.column.index]) for one in (*said, *against)) if differs else ""
    return Result(status, column, shown)


class _Said(NamedTuple):
    status: Status | None
    column: Column


def _counting(said: Sequence[_Said]) -> _Said:
    """Return the last, or the worst of those beside it."""
    if said[-1].column.gives is not Gives.BESIDE:
        return said[-1]
    return min((one for one in said if one.column.gives is Gives.BESIDE), key=lambda one: WORST.index(one.status))


def _said(row: Sequence[Cell], column: Column) -> _Said | None:
    """Return what a column says; None where it says nothing, as one of tests anew does of what needed none."""
    cell = row[column.index] if column.index < len(row) else None
    if is_blank(cell) or (isinstance(cell, str) and not cell.strip(_DASHES)):
        return None
    status = status_of(cell, column.label)
    return None if status is Status.SKIPPED and column.gives is Gives.RETEST else _Said(status, column)
