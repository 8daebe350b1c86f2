"""Write the review sheets of a run, and never over what a person filled in and nobody has read back yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headrace import ConfigError
from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.output.table import write_table
from headrace.apps.papers.review.checking import SAYS, Check
from headrace.apps.papers.review.decisions import OPEN, Decision
from headrace.apps.papers.review.reading import read_sheet
from headrace.apps.papers.review.sheet import COLUMNS, SheetLine, sheet_lines
from headrace.apps.papers.review.workbook import write_workbook

Decisions = Mapping[Place, Decision]


def write_sheets(out: Path, run_id: str, lines: Sequence[ValueLine], decisions: Decisions) -> tuple[Path, ...]:
    """Write `review.xlsx` and `review.csv` into the folder `out`; return the paths.

    A sheet that says more than was read back keeps its name, and the new one is `review-2.xlsx` and so on.
    """
    sheet = sheet_lines(run_id, lines, decisions)
    unread = Unread(run_id, {line.place: line for line in lines}, decisions)
    forms: tuple[tuple[str, Callable[[Path, Sequence[SheetLine]], None]], ...] = (
        (".xlsx", write_workbook),
        (".csv", _write_csv),
    )
    paths = []
    for suffix, write in forms:
        path = _free(out, suffix, unread)
        write(path, sheet)
        paths.append(path)
    return tuple(paths)


class Unread:
    """Tells whether a sheet holds work that would be lost."""

    def __init__(self, run_id: str, lines: Mapping[Place, ValueLine], decisions: Decisions) -> None:
        self._run_id = run_id
        self._lines = lines
        self._decisions = decisions

    def holds(self, path: Path) -> bool:
        """Whether the file says anything that is not decided so already, or cannot be understood."""
        try:
            said = [line for line in read_sheet(path) if any(line.cells[name] != "" for name in SAYS)]
        except ConfigError:
            return True
        check = Check(self._run_id, self._lines, self._decisions)
        check.read(said)
        decided = check.decided.items()
        return bool(check.mistakes) or any(
            not said.decision.same_as(self._decisions.get(place, OPEN)) for place, said in decided
        )


def _free(out: Path, suffix: str, unread: Unread) -> Path:
    path, number = out / f"review{suffix}", 1
    while path.exists() and unread.holds(path):
        number += 1
        path = out / f"review-{number}{suffix}"
    return path


def _write_csv(path: Path, lines: Sequence[SheetLine]) -> None:
    write_table(path, COLUMNS, (line.cells() for line in lines))
