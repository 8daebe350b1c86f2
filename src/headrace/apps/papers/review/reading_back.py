"""Read a review sheet back: checked as a whole, logged as a whole, and told in the files of verified values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.output.model import Verification
from headrace.apps.papers.review.checking import Check, Said
from headrace.apps.papers.review.decisions import OPEN, Answer, Decision
from headrace.apps.papers.review.errors import ReviewError, SheetError
from headrace.apps.papers.review.lock import locked
from headrace.apps.papers.review.log import Change, ReviewLog
from headrace.apps.papers.review.opened import RECORD, Opened, open_results
from headrace.apps.papers.review.reading import read_sheet
from headrace.apps.papers.review.verified import extracted_json, verification_of, write_if_changed, write_verified


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What reading a sheet back did."""

    verification: Verification
    #: Decisions that this sheet made or changed, by what they are.
    changes: Mapping[str, int]
    #: Of these the ones that replace what somebody else decided.
    overruled: int
    files: tuple[Path, ...]

    def to_json(self) -> dict[str, Any]:
        """A JSON-able mapping."""
        return {
            "changes": dict(self.changes),
            "overruled": self.overruled,
            "verification": self.verification.to_json(),
            "files": [str(file) for file in self.files],
        }


def read_back(sheet: Path, out: Path, *, reviewer: str = "", now: datetime | None = None) -> ReadBack:
    """Take the decisions of a sheet into the folder of a run's results; the same sheet again changes nothing.

    `reviewer` is who decided the lines that name nobody. Raises SheetError with every mistake, or ReviewError, and then
    nothing is changed.
    """
    if not out.is_dir():
        raise ReviewError(f"--out must be a folder with the results of `headrace papers extract`, got {out}")
    said = read_sheet(sheet)
    with locked(out):
        opened, log = open_results(out), ReviewLog(out)
        decisions = log.decisions(opened.lines)
        lines = {line.place: line for line in opened.lines}
        check = Check(opened.run_id, lines, decisions, reviewer)
        check.read(said)
        if check.mistakes:
            raise SheetError(str(sheet), check.mistakes)
        changes = changes_of(check.decided, decisions, lines, sheet=sheet.name, now=now or datetime.now(UTC))
        if changes:
            log.add([change.to_json(extracted_json(lines[change.place])) for change in changes])
        after = decisions | {change.place: change.after for change in changes}
        files = _write(opened, out, after)
    return ReadBack(
        verification_of(after),
        Counter(change.what for change in changes),
        sum(_overrules(change) for change in changes),
        files,
    )


def changes_of(
    decided: Mapping[Place, Said],
    before: Mapping[Place, Decision],
    lines: Mapping[Place, ValueLine],
    *,
    sheet: str,
    now: datetime,
) -> list[Change]:
    """What the sheet says that is not decided so already."""
    changes = []
    for place, said in decided.items():
        old, line = before.get(place, OPEN), lines[place]
        if said.decision.same_as(old):
            continue
        kept = old.decided_at if replace(said.decision, comment=old.comment).same_as(old) else now
        after = replace(said.decision, decided_at=kept)
        changes.append(Change(now, said.who, place, line.name, line.digest, old, after, sheet))
    return changes


def _overrules(change: Change) -> bool:
    old, new = change.before, change.after
    if old.answer is Answer.OPEN or old.reviewer == change.who:
        return False
    return (old.answer, old.value, old.says) != (new.answer, new.value, new.says)


def _write(opened: Opened, out: Path, decisions: Mapping[Place, Decision]) -> tuple[Path, ...]:
    files = write_verified(out, opened.lines, decisions)
    record = opened.record | {"verification": verification_of(decisions).to_json()}
    told = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    write_if_changed(out / RECORD, told.encode())
    return (*files, out / RECORD)
