"""What a sheet says, checked line by line: decisions, or every mistake with its place and rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from headrace.apps.papers.output.cells import typed
from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.review.decisions import FIRST, OPEN, SECOND, Answer, Decision, accepted
from headrace.apps.papers.review.edits import UnfitEditError, edited
from headrace.apps.papers.review.errors import Mistake
from headrace.apps.papers.review.keys import Key
from headrace.apps.papers.review.reading import ReadLine
from headrace.apps.papers.review.sheet import (
    ACCEPT,
    CHECKED,
    COMMENT,
    EDITED_VALUE,
    KEY,
    NO,
    REOPEN,
    REVIEWER,
    SHOWN,
    YES,
    SheetLine,
)
from headrace.apps.papers.review.unchanged import is_unchanged
from headrace.apps.papers.sameness import same_value

T = TypeVar("T")

MAX_COMMENT_CHARS = 5_000
MAX_REVIEWER_CHARS = 200
#: A name alone decides nothing: people fill it in for a whole column.
SAYS = (ACCEPT, EDITED_VALUE, COMMENT)
_WITHOUT_KEY = "take the sheet that the run wrote, and keep its last column"
_OTHER_RUN = "name with --out the folder that the sheet was written into, or fill in the sheet of this folder"
_GONE = "delete these lines, or take a new sheet from this folder"
_WORDS = {"y": YES, "true": YES, "n": NO, "false": NO, "1": FIRST, "2": SECOND}


class _WrongCellError(ValueError):
    """A cell breaks a rule."""

    def __init__(self, column: str, rule: str) -> None:
        super().__init__(rule)
        self.column = column
        self.rule = rule


class _StrangeLineError(_WrongCellError):
    """A line does not belong to the run: most often its whole sheet does not, which is told once."""

    def __init__(self, rule: str, fix: str) -> None:
        super().__init__(KEY, rule)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Said:
    """A decision, and who made the last change of it."""

    decision: Decision
    who: str


@dataclass
class Check:
    """Reads the lines of a sheet against the values of a run and what is decided of them."""

    run_id: str
    lines: Mapping[Place, ValueLine]
    decisions: Mapping[Place, Decision]
    #: Who decided the lines that name nobody.
    reviewer: str = ""
    decided: dict[Place, Said] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    _seen: dict[Place, int] = field(default_factory=dict)
    #: Lines that do not belong, by what would mend them.
    _strange: dict[str, list[Mistake]] = field(default_factory=dict)

    def read(self, sheet: Sequence[ReadLine]) -> None:
        """Fill `decided` and `mistakes`. Lines that say nothing beyond what was written there are in neither."""
        for line in sheet:
            key = self._attempt(line, partial(self._key, line))
            if key is not None:
                self._read(line, key)
        strange = [_told_once(found, fix, len(sheet)) for fix, found in self._strange.items()]
        # First, for whoever took the wrong sheet need not read the rest.
        self.mistakes[:0] = strange
        self._strange.clear()

    def _attempt(self, read: ReadLine, check: Callable[[], T]) -> T | None:
        try:
            return check()
        except _StrangeLineError as strange:
            found = self._strange.setdefault(strange.fix, [])
            found.append(Mistake(read.number, strange.column, strange.rule, read.cells[KEY]))
            return None
        except _WrongCellError as wrong:
            self.mistakes.append(Mistake(read.number, wrong.column, wrong.rule, read.cells[wrong.column]))
            return None

    def _key(self, read: ReadLine) -> Key:
        key = Key.parse(str(read.cells[KEY]))
        if key is None:
            raise _StrangeLineError("must be the key that was written there, in a hidden column", _WITHOUT_KEY)
        if not key.is_of(self.run_id):
            rule = f"must be of the run {self.run_id[:12]} in this folder, and is of {key.run}"
            raise _StrangeLineError(rule, _OTHER_RUN)
        if key.place not in self.lines:
            raise _StrangeLineError("must be of a value of this run; the results do not hold it (any more)", _GONE)
        first = self._seen.setdefault(key.place, read.number)
        if first != read.number:
            raise _WrongCellError(KEY, f"must stand in one line only, and stands in line {first} too")
        return key

    def _read(self, read: ReadLine, key: Key) -> None:
        if key.was_open and not any(read.cells[name] != "" for name in SAYS):
            return
        before = len(self.mistakes)
        line = self.lines[key.place]
        for name in CHECKED:
            self._attempt(read, partial(_check_shown, read, name, line, key))
        answer = self._attempt(read, partial(self._answer, read, line, key))
        comment = self._attempt(read, partial(_words, read, COMMENT, MAX_COMMENT_CHARS))
        who = self._attempt(read, partial(self._reviewer, read))
        if answer is None or comment is None or who is None or len(self.mistakes) > before:
            return
        decision = replace(answer, comment=comment or answer.comment, reviewer=answer.reviewer or who)
        if decision.digest != key.decision:
            self.decided[key.place] = Said(decision, who)

    def _reviewer(self, read: ReadLine) -> str:
        reviewer = _words(read, REVIEWER, MAX_REVIEWER_CHARS) or self.reviewer
        if not reviewer:
            raise _WrongCellError(REVIEWER, "must say who decided; fill it in, or name one for all with --reviewer")
        return reviewer

    def _answer(self, read: ReadLine, line: ValueLine, key: Key) -> Decision:
        accept, edit = _accept(read, line), _edit(read, line)
        if accept == "" and edit is None and key.was_open:
            # Only a comment: whatever is decided of the value by now stays.
            return self.decisions.get(key.place, OPEN)
        return _with_edit(accept, edit, line) if edit is not None else _without_edit(accept, line)


def _told_once(found: Sequence[Mistake], fix: str, lines: int) -> Mistake:
    many = f"{len(found)} of {lines} lines do" if len(found) > 1 else "the line does"
    return replace(found[0], advice=f"{many} not belong to the results there: {fix}")


def _check_shown(read: ReadLine, name: str, line: ValueLine, key: Key) -> None:
    written = dict(zip(SHOWN, SheetLine(line, OPEN, key).shown(), strict=True))[name]
    if line.digest != key.digest:
        if name == "value":
            rule = f"must be the value of today, {written!r}; it changed since the sheet was written: take a new one"
            raise _WrongCellError(name, rule)
    elif not is_unchanged(written, read.cells[name]):
        hint = "; write the right value into edited_value" if name == "value" else ""
        raise _WrongCellError(name, f"must stay as it was written, {written!r}{hint}")


def _accept(read: ReadLine, line: ValueLine) -> str:
    cell = read.cells[ACCEPT]
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    word = str(cell).strip().casefold()
    word = _WORDS.get(word, word)
    choices = (FIRST, SECOND, NO, REOPEN) if line.candidates else (YES, NO, REOPEN)
    if word and word not in choices:
        why = ", for two extractions differ" if line.candidates else ""
        raise _WrongCellError(ACCEPT, f"must be {', '.join(choices)} or empty{why}")
    return word


def _edit(read: ReadLine, line: ValueLine) -> Decision | None:
    cell = read.cells[EDITED_VALUE]
    if cell == "":
        return None
    try:
        value, says = edited(line.field, cell)
    except UnfitEditError as unfit:
        raise _WrongCellError(EDITED_VALUE, str(unfit)) from None
    return Decision(Answer.EDITED, value, says)


def _without_edit(accept: str, line: ValueLine) -> Decision:
    if accept in ("", REOPEN):
        return OPEN
    if accept == NO:
        return Decision(Answer.REJECTED)
    return accepted(line, "" if accept == YES else accept)


def _with_edit(accept: str, edit: Decision, line: ValueLine) -> Decision:
    same = _as_extracted(line, edit, accept)
    if same is not None and accept in ("", same.candidate or YES):
        return same
    if same is not None or accept not in ("", NO):
        raise _WrongCellError(EDITED_VALUE, f"must be empty or agree with {ACCEPT}, which is {accept!r}")
    return edit


def _as_extracted(line: ValueLine, edit: Decision, accept: str) -> Decision | None:
    """The acceptance that an edit amounts to: what was extracted, typed once more."""
    candidates = sorted((FIRST, SECOND), key=lambda candidate: candidate != accept) if line.candidates else [""]
    for candidate in candidates:
        known = accepted(line, candidate)
        if known.says == edit.says and same_value(line.field, known.value, edit.value):
            return known
    return None


def _words(read: ReadLine, column: str, limit: int) -> str:
    cell = read.cells[column]
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = "\n".join(map(_printable, typed(str(cell)).strip().splitlines()))
    if len(text) > limit:
        raise _WrongCellError(column, f"must have at most {limit:,} characters")
    return text


def _printable(line: str) -> str:
    spaced = "".join(" " if char.isspace() else char for char in line)
    return "".join(char for char in spaced if char.isprintable())
