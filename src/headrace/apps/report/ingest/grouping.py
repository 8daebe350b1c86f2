"""Cases that take several rows, one for each step: their rows are joined before they are read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import groupby

from headrace.apps.report.ingest.cells import Cell, Grid, Rows, is_blank, text_of
from headrace.apps.report.ingest.columns import Column, Header
from headrace.apps.report.ingest.results import WORST
from headrace.apps.report.ingest.values.levels import status_of

#: Fields that steps have of their own: their texts are put below each other. Of others the first text counts.
_OF_STEPS = ("steps", "expected", "actual", "error", "remark")


#: What a row of steps has not of its own: with one of these it is a case whose name is missing.
_OF_CASES = ("module", "priority", "executor", "executed_at")


def owning(grid: Grid, header: Header) -> frozenset[int]:
    """Return the rows with something that only cases have; look before merged cells are filled down."""
    indexes = [header.fields[name].index for name in _OF_CASES if name in header.fields]
    # Without titles a row of steps with a result looks as a case without an id does.
    indexes += [] if "title" in header.fields else [column.index for column in header.rounds]
    return frozenset(
        number
        for number, row in enumerate(grid.rows)
        if any(index < len(row) and not is_blank(row[index]) for index in indexes)
    )


def grouped(grid: Grid, header: Header, owning: Container[int] = ()) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of each case, with the number of the first as people count it.

    Rows that are `owning` something go on only under a merged id.
    """
    start, fields = header.last + 1, header.fields
    spanned = _spanned(grid, fields.get("case_id"), start)
    group: Rows = []
    first = start
    for number, row in enumerate(grid.rows[start:], start):
        is_spanned = number in spanned
        if group and (is_spanned or number not in owning) and _goes_on(group, row, fields, is_spanned):
            group.append(row)
            continue
        if group:
            yield first + 1, group
        group, first = [row], number
    if group:
        yield first + 1, group


def joined(rows: Rows, header: Header) -> Sequence[Cell]:
    """Return the rows of a case as one."""
    if len(rows) == 1:
        return rows[0]
    columns = {column.index: column for column in header.columns}
    whole: list[Cell] = []
    for index in range(max(len(row) for row in rows)):
        cells = [row[index] for row in rows if index < len(row) and not is_blank(row[index])]
        whole.append(_joined(cells, columns.get(index)))
    return whole


def _joined(cells: list[Cell], column: Column | None) -> Cell:
    if not cells:
        return None
    if column and column.gives:
        return min(cells, key=lambda cell: WORST.index(status_of(cell, column.label)))
    if column and column.field in _OF_STEPS:
        # A merged cell says the same for each of its rows.
        texts = [text for text, _ in groupby(text_of(cell) for cell in cells)]
        return "\n".join(texts) if len(texts) > 1 else cells[0]
    return cells[0]


def _spanned(grid: Grid, column: Column | None, start: int) -> set[int]:
    """Return the rows that a merged id goes on into."""
    if column is None:
        return set()
    height = len(grid.rows)
    spans = [(top, end) for top, left, end, _ in grid.merges or () if left == column.index and top >= start]
    # As many rows as there are, however often ranges lie on top of each other.
    found: set[int] = set()
    reached = start
    for top, end in sorted(spans):
        found.update(range(max(top + 1, reached), min(end + 1, height)))
        reached = max(reached, end + 1)
    return found


def _goes_on(group: Rows, row: Sequence[Cell], fields: dict[str, Column], is_spanned: bool) -> bool:
    """Whether a row is one more of the case above: under its merged id, or with steps and nothing that names it."""

    def cell(of: Sequence[Cell], field: str) -> Cell:
        """Return the cell of a field."""
        column = fields.get(field)
        return of[column.index] if column and column.index < len(of) else None

    title = cell(row, "title")
    if is_spanned:
        return is_blank(title) or title == cell(group[0], "title")
    has_name = not is_blank(title) or not is_blank(cell(row, "case_id"))
    is_case_above = not is_blank(cell(group[0], "title")) or not is_blank(cell(group[0], "case_id"))
    return not has_name and is_case_above and any(not is_blank(cell(row, name)) for name in ("steps", "expected"))
