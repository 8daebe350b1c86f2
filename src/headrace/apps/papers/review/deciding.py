"""One value decided by itself: by the rules of a sheet with one line, into the same log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace import InvalidInputError
from headrace.apps.papers.output.cells import safe_value
from headrace.apps.papers.output.lines import ValueLine
from headrace.apps.papers.review.checking import Check
from headrace.apps.papers.review.decisions import OPEN, Decision
from headrace.apps.papers.review.keys import Key
from headrace.apps.papers.review.lock import locked
from headrace.apps.papers.review.log import SERVICE, ReviewLog
from headrace.apps.papers.review.reading import ReadLine
from headrace.apps.papers.review.reading_back import changes_of
from headrace.apps.papers.review.sheet import ACCEPT, COLUMNS, EDITED_VALUE, FILLED, SheetLine
from headrace.apps.papers.review.verified import extracted_json
from headrace.apps.papers.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person says of a value, as in the columns of a sheet; `accept` or `edited_value` says something."""

    #: `yes`, `no` or `open`; of two extractions that differ `first`, `second`, `no` or `open`
    accept: str = ""
    #: as it may stand in a cell: `0.2 g`, `[not reported]`
    edited_value: str | float | bool = ""
    comment: str = ""
    #: who says so
    reviewer: str = ""

    def cells(self) -> dict[str, object]:
        """What it fills in of a sheet."""
        said = (self.accept, self.edited_value, self.comment, self.reviewer)
        return dict(zip(FILLED, said, strict=True))


def decide(workspace: Workspace, run_id: str, line: ValueLine, verdict: Verdict, *, now: datetime) -> Decision:
    """Take what a person decided of a value into the log of its run, and return what is decided now.

    It replaces what was decided before; the same again changes nothing. Raises InvalidInputError naming the column of
    the sheet whose rule is broken, and ReviewError for a log that cannot be read.
    """
    if verdict.accept == verdict.edited_value == "":
        raise InvalidInputError(ACCEPT, f"must be given, or {EDITED_VALUE}", None)
    while True:
        folder = workspace.review_folder(run_id)
        with locked(folder):
            # A command may have written its results elsewhere meanwhile, and taken the log along.
            if workspace.review_folder(run_id) == folder:
                return _decided(ReviewLog(folder), run_id, line, verdict, now)


def _decided(log: ReviewLog, run_id: str, line: ValueLine, verdict: Verdict, now: datetime) -> Decision:
    decisions, lines = log.decisions([line]), {line.place: line}
    check = Check(run_id, lines, decisions)
    check.read([_sheet_line(run_id, line, verdict)])
    for mistake in check.mistakes:
        raise InvalidInputError(mistake.column, mistake.rule, mistake.value)
    changes = changes_of(check.decided, decisions, lines, sheet=SERVICE, now=now)
    if not changes:
        return decisions[line.place]
    log.add([change.to_json(extracted_json(line)) for change in changes])
    return changes[0].after


def _sheet_line(run_id: str, line: ValueLine, verdict: Verdict) -> ReadLine:
    """Return the one line of a sheet in which only this is filled in."""
    cells = SheetLine(line, OPEN, Key.of(run_id, line, OPEN)).cells()
    written: dict[str, object] = dict(zip(COLUMNS, map(safe_value, cells), strict=True))
    return ReadLine(1, written | verdict.cells())
