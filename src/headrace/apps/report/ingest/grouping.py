"""Cases that take several rows, one for each step: their rows are joined before they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from headrace.apps.report.data.cases import Status
from headrace.apps.report.ingest.cells import Cell, Grid, Rows, is_blank, text_of
from headrace.apps.report.ingest.header import Column, Header
from headrace.apps.report.ingest.values.levels import status_of

#: Fields that steps have of their own: their texts are put below each other. Of others the first text counts.
_OF_STEPS = ("steps", "expected", "actual", "error", "remark")
#: Of several results the first of these is the case's: one whose steps did not all pass did not pass.
_WORST = (Status.FAILED, Status.BLOCKED, None, Status.SKIPPED, Status.PASSED)


def grouped(grid: Grid, header: Header) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of each case, with the number of the first as people count it."""
    start, fields = header.last + 1, header.fields
    spanned = _spanned(grid, fields.get("case_id"), start)
    group: Rows = []
    first = start
    for number, row in enumerate(grid.rows[start:], start):
        if group and _goes_on(group, row, fields, number in spanned):
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
    names = {column.index: column.field for column in header.columns}
    whole: list[Cell] = []
    for index in range(max(len(row) for row in rows)):
        cells = [row[index] for row in rows if index < len(row) and not is_blank(row[index])]
        whole.append(_joined(cells, names.get(index), header))
    return whole


def _joined(cells: list[Cell], field: str | None, header: Header) -> Cell:
    if not cells:
        return None
    if field == "status":
        named = header.fields["status"].header
        return min(cells, key=lambda cell: _WORST.index(status_of(cell, named)))
    if field in _OF_STEPS:
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
