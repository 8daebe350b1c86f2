"""Merged cells: their value stands in the first of them alone, and is given to the others where it is theirs too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.apps.report.ingest.cells import Grid, Merge, Rows, is_blank


def filled_head(grid: Grid, most: int) -> Rows:
    """Return the first rows of a sheet with every merged cell holding the value of its range."""
    rows = [list(row) for row in grid.rows[:most]]
    for first, left, last, right in _apart(grid.merges or (), len(rows), max(map(len, rows), default=0)):
        value = rows[first][left] if left < len(rows[first]) else None
        for row in rows[first : last + 1]:
            row[left : right + 1] = [value] * len(row[left : right + 1])
    return rows


def fill_body(grid: Grid, start: int) -> None:
    """Give the cells of ranges that go down, from row `start` on, their value: in their first column alone.

    A range that goes across is one cell drawn wide; its value belongs to no other column.
    """
    # Their first columns alone, so that what they go over is no larger than the sheet.
    down = tuple((first, left, last, left) for first, left, last, _ in grid.merges or () if first >= start)
    for merge in _apart(down, len(grid.rows), max(map(len, grid.rows), default=0)):
        _fill_down(grid.rows, merge, merge[1])


def _apart(merges: Iterable[Merge], height: int, width: int) -> Iterator[Merge]:
    """Yield ranges within a sheet. No two share a cell in a sheet that people made: all are no larger than the sheet.

    Those of a damaged or hostile one may lie on top of each other by the thousand; they end where that shows.
    """
    room = height * width
    for first, left, last, right in merges:
        if first >= height or left >= width:
            continue
        clipped = (first, left, min(last, height - 1), min(right, width - 1))
        room -= (clipped[2] - first + 1) * (clipped[3] - left + 1)
        if room < 0:
            return
        yield clipped


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
