"""Merged cells: their value stands in the first of them alone, and is given to the others where it is theirs too."""

from __future__ import annotations

from headrace.apps.report.ingest.cells import Grid, Merge, Rows, is_blank


def filled_head(grid: Grid, most: int) -> Rows:
    """Return the first rows of a sheet with every merged cell holding the value of its range."""
    rows = [list(row) for row in grid.rows[:most]]
    for first, left, last, right in grid.merges or ():
        if first >= len(rows) or left >= len(rows[first]):
            continue
        value = rows[first][left]
        for row in rows[first : last + 1]:
            for column in range(left, min(right + 1, len(row))):
                row[column] = value
    return rows


def fill_body(grid: Grid, start: int) -> None:
    """Give the cells of ranges that go down, from row `start` on, their value: in their first column alone.

    A range that goes across is one cell drawn wide; its value belongs to no other column.
    """
    for merge in grid.merges or ():
        first, left, last, _ = merge
        if first >= start and last > first and first < len(grid.rows):
            _fill_down(grid.rows, merge, left)


def _fill_down(rows: Rows, merge: Merge, column: int) -> None:
    first, _, last, _ = merge
    value = rows[first][column] if column < len(rows[first]) else None
    for row in rows[first + 1 : last + 1]:
        if column < len(row) and is_blank(row[column]):
            row[column] = value


def fill_sparse(rows: Rows, start: int, column: int) -> None:
    """Fill a column down where a format does not tell merged cells, and more than half of it is empty below a value.

    Files that were made of sheets with merged cells have the value in the first row of each range alone.
    """
    body = [row for row in rows[start:] if column < len(row) and not all(is_blank(cell) for cell in row)]
    if not body or is_blank(body[0][column]) or 2 * sum(is_blank(row[column]) for row in body) <= len(body):
        return
    value = body[0][column]
    for row in body:
        if is_blank(row[column]):
            row[column] = value
        value = row[column]
