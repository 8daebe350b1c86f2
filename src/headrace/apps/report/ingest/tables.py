"""The tables of a sheet: one may stand below another, with other columns, or with the same in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from headrace.apps.report.ingest.cells import Cell, Grid
from headrace.apps.report.ingest.columns import Header
from headrace.apps.report.ingest.header import header_at
from headrace.apps.report.ingest.words import words

#: Cells of a row that are words of headers, as they are written: no row with fewer is looked at any closer.
_HINTS = 2


def tables_of(grid: Grid, first: Header) -> Iterator[tuple[Header, Grid]]:
    """Yield each header of a sheet with the rows down to the next one."""
    header = first
    # A header of several rows that is printed on every page is told as a whole, whatever one of its rows says.
    parts = [grid.rows[row] for row in range(first.first, first.last + 1)] if first.last > first.first else []
    labels = frozenset(column.label.casefold() for column in first.columns) | _written()
    for number in range(first.last + 1, len(grid.rows)):
        row = grid.rows[number]
        if not _may_be_header(row, labels) or row in parts:
            continue
        found = header_at(grid, number)
        if found and _is_other(found, header):
            yield header, replace(grid, rows=grid.rows[:number])
            header = found
    yield header, grid


def _may_be_header(row: Sequence[Cell], labels: frozenset[str]) -> bool:
    return sum(isinstance(cell, str) and cell.strip().casefold() in labels for cell in row) >= _HINTS


def _is_other(found: Header, header: Header) -> bool:
    """Whether a header has a field elsewhere than the one above, or one that it has not."""
    places = {field: column.index for field, column in header.fields.items()}
    return any(places.get(field) != column.index for field, column in found.fields.items())


@lru_cache(maxsize=1)
def _written() -> frozenset[str]:
    return frozenset(word.casefold() for listed in words()["fields"].values() for word in listed)
