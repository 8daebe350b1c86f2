"""Finds the table of a sheet: the rows of its header, below titles and notes, and what each column stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.apps.report.ingest.cells import Cell, Grid, Rows, is_blank, key_of, text_of
from headrace.apps.report.ingest.columns import MIN_FIELDS, Column, Gives, Header
from headrace.apps.report.ingest.filling import filled_head
from headrace.apps.report.ingest.labels import Meaning, meaning_of
from headrace.apps.report.ingest.words import meanings

#: Rows in which a header is looked for, and rows that one may take.
SEARCHED_ROWS, MAX_HEADER_ROWS = 50, 3
_NAMES = frozenset(("case_id", "title"))
#: Fields of a header below another one.
_MIN_BELOW = 3
#: A header has at least `MIN_FIELDS`, and one of these among them.
ANCHORS = frozenset(("case_id", "title", "status"))
#: And one of these: a history of versions has numbers, dates and descriptions as well.
TELLING = frozenset(
    ("status", "steps", "expected", "actual", "preconditions", "priority", "severity", "module", "error")
)


def find_header(grid: Grid) -> Header | None:
    """Return the header of a sheet: the rows that name most fields, the fewest and first of them.

    A table above those counts as well; what stands below is told by `header_at`.
    """
    rows = filled_head(grid, SEARCHED_ROWS + MAX_HEADER_ROWS)
    best: tuple[int, int, int] | None = None
    for first in range(min(len(rows), SEARCHED_ROWS)):
        for depth in range(1, min(MAX_HEADER_ROWS, len(rows) - first) + 1):
            if depth > 1 and _is_data(rows[first + depth - 1]):
                break
            fields = set(_claims(rows[first : first + depth], grid.merges is None))
            score = (len(fields), -depth, -first)
            if _is_enough(fields) and (best is None or score > best):
                best = score
    if best is None:
        return None
    first, depth = -best[2], -best[1]
    return _above(grid, first) or _header(rows, first, depth, grid)


def _above(grid: Grid, first: int) -> Header | None:
    """Return the header of a table above the one with most fields: its cases would be lost. It names its cases."""
    for row in range(first - 1):
        header = header_at(grid, row)
        is_apart = header and any(not is_blank(cell) for below in grid.rows[header.last + 1 : first] for cell in below)
        if header and is_apart and _NAMES & set(header.fields):
            return header
    return None


def header_at(grid: Grid, row: int) -> Header | None:
    """Return the header that one row below the first header is; None where it is none."""
    filled = sum(not is_blank(cell) for cell in grid.rows[row])
    claims = _claims(grid.rows[row : row + 1], fill=False)
    # Most of its words stand for something, and more of them than a row of data could have by accident.
    is_one = len(claims) >= _MIN_BELOW and 2 * len(claims) > filled and _is_enough(set(claims))
    return _header(grid.rows, row, 1, grid) if is_one else None


def _is_enough(fields: set[str]) -> bool:
    return len(fields) >= MIN_FIELDS and bool(fields & ANCHORS) and bool(fields & TELLING)


def _is_data(row: Sequence[Cell]) -> bool:
    """Whether a row cannot be of a header: it has numbers, dates or results."""
    filled = [cell for cell in row if not is_blank(cell)]
    return any(not isinstance(cell, str) or key_of(cell) in meanings("status") for cell in filled)


def _header(rows: Rows, first: int, depth: int, grid: Grid) -> Header:
    claims = _claims(rows[first : first + depth], grid.merges is None)
    gives = _giving(_meanings(rows[first : first + depth], grid.merges is None))
    by_column = {index: (field, meaning) for field, (index, meaning) in claims.items()}
    top, end = _extended(grid, first, first + depth - 1, set(by_column))
    columns = []
    seen: dict[str, int] = {}
    for index in range(max(len(row) for row in rows[first : first + depth])):
        header = _shown(rows[top : end + 1], index)
        if not header:
            continue
        seen[header] = seen.get(header, 0) + 1
        name = header if seen[header] == 1 else f"{header} ({seen[header]})"
        field, meaning = by_column.get(index, (None, None))
        columns.append(Column(index, name, header, field, meaning.unit if meaning else None, gives.get(index)))
    return Header(top, end, tuple(columns))


def _claims(rows: Rows, fill: bool) -> dict[str, tuple[int, Meaning]]:
    """Return the column of each field, the one with the most common word for it."""
    claims: dict[str, tuple[int, Meaning]] = {}
    for index, meaning in _meanings(rows, fill).items():
        if meaning.field not in claims or meaning.rank < claims[meaning.field][1].rank:
            claims[meaning.field] = (index, meaning)
    return claims


def _meanings(rows: Rows, fill: bool) -> dict[int, Meaning]:
    """Return what each column means that means something."""
    uppers = [_carried(row) if fill else row for row in rows[:-1]]
    found = {
        index: _meaning([*(_at(row, index) for row in uppers), _at(rows[-1], index)], _at(rows[0], index))
        for index in range(max(len(row) for row in rows))
    }
    return {index: meaning for index, meaning in found.items() if meaning}


def _giving(meanings: Mapping[int, Meaning]) -> dict[int, Gives]:
    """Return how each column of results counts: those with the best word, and with the name of a round, are rounds."""
    of_results = {index: meaning for index, meaning in meanings.items() if meaning.field == "status"}
    best = min((meaning.rank for meaning in of_results.values()), default=0)
    return {index: _how(meaning, best) for index, meaning in of_results.items()}


def _how(meaning: Meaning, best: int) -> Gives:
    if meaning.is_retest:
        return Gives.RETEST
    if meaning.rank == best and meaning.is_beside:
        return Gives.BESIDE
    return Gives.ROUND if meaning.is_round or meaning.rank == best else Gives.OTHER


def _meaning(labels: list[str], first: str) -> Meaning | None:
    """Return what a column's labels, from the top down, mean together, else the last, else the first alone."""
    distinct = list(dict.fromkeys(label for label in labels if label))
    if not distinct:
        return None
    together = meaning_of(" ".join(distinct)) if len(distinct) > 1 else None
    if together:
        return together
    # A label above stands for the column only where nothing stands below it: else it is a group's.
    return meaning_of(labels[-1]) if labels[-1] else meaning_of(first)


def _carried(row: Sequence[Cell]) -> list[Cell]:
    """Return a row of groups with each name carried to the right, as merged cells would have it."""
    carried: list[Cell] = []
    for cell in row:
        carried.append(carried[-1] if is_blank(cell) and carried else cell)
    return carried


def _at(row: Sequence[Cell], index: int) -> str:
    return text_of(row[index]) if index < len(row) else ""


def _shown(rows: Rows, index: int) -> str:
    """Return the lowest label of a column: what people read as its header."""
    labels = [label for row in rows if (label := _at(row, index))]
    return " ".join(labels[-1].split())[:100] if labels else ""


def _extended(grid: Grid, first: int, last: int, columns: set[int]) -> tuple[int, int]:
    """Return the rows of a header with those that its merged cells reach into."""
    top, end = first, last
    for upper, left, lower, right in grid.merges or ():
        reaches = upper <= last and lower >= first and lower - upper < MAX_HEADER_ROWS
        if reaches and columns.intersection(range(left, right + 1)):
            top, end = min(top, upper), max(end, lower)
    return top, end
