"""The lines of a review sheet: what to verify, in the order to work it off, and four columns for the person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.output.table import Cells
from headrace.apps.papers.result import Candidate, Finding, Status
from headrace.apps.papers.review.decisions import FIRST, OPEN, REPORTED, SECOND, Answer, Decision
from headrace.apps.papers.review.keys import Key
from headrace.apps.papers.template import TemplateField, Value

_JUDGED = (
    "document", "group", "row", "row_name", "field", "status", "value", "unit", "quote", "page", "second_value",
    "second_quote", "second_page",
)  # fmt: skip
_FURTHER = ("note", "section", "type", "allowed", "description")
#: What the sheet says of a value; a person leaves it alone.
SHOWN = (*_JUDGED, *_FURTHER)
#: Of these the ones that tell whether a line is still what it was written as.
CHECKED = ("document", "group", "row", "field", "value", "second_value")
ACCEPT, EDITED_VALUE, COMMENT, REVIEWER = FILLED = ("accept", "edited_value", "comment", "reviewer")
KEY = "key"
#: What a person fills in stands beside what it is about.
COLUMNS = (*_JUDGED, *FILLED, *_FURTHER, KEY)

YES, NO, REOPEN = "yes", "no", "open"
_FORMS = {"boolean": "true; false", "date": "YYYY, YYYY-MM or YYYY-MM-DD", "list": "items with ; between them"}
_FIRST_TO_SEE = (Status.NEEDS_REVIEW, Status.UNCLEAR)


@dataclass(frozen=True, slots=True)
class SheetLine:
    """One value as a line of the sheet."""

    line: ValueLine
    decision: Decision
    key: Key

    @property
    def choices(self) -> tuple[str, ...]:
        """What may stand in `accept`."""
        return (FIRST, SECOND, NO, REOPEN) if self.line.candidates else (YES, NO, REOPEN)

    def cells(self) -> Cells:
        """The cells of all columns."""
        shown = self.shown()
        return (*shown[: len(_JUDGED)], *self.filled(), *shown[len(_JUDGED) :], str(self.key))

    def shown(self) -> Cells:
        """The cells of the columns that say what to verify; of a disagreement the first candidate comes first."""
        line, place, field = self.line, self.line.place, self.line.field
        first: Finding = line.found
        second: Candidate | None = None
        if line.candidates is not None:
            first, second = line.candidates
        return (
            line.name, place.group, place.row or None, line.row_name, place.field,
            line.found.status.value, _said(first, second), field.unit, first.quote, first.page,
            _said(second, second), second.quote if second else None, second.page if second else None,
            line.found.note, first.section, field.type, allowed(field), field.description,
        )  # fmt: skip

    def filled(self) -> Cells:
        """The cells of the person's columns, with what is decided already."""
        decision = self.decision
        edit: Value | None = None
        match decision.answer:
            case Answer.OPEN:
                accept = ""
            case Answer.ACCEPTED:
                accept = decision.candidate or YES
            case _:
                accept = NO
        if decision.answer is Answer.EDITED:
            edit = decision.value if decision.says == REPORTED else f"[{decision.says.replace('_', ' ')}]"
        return (accept, edit, decision.comment, decision.reviewer)


def allowed(field: TemplateField) -> str:
    """What a value of the field looks like, where that is not plain from its type.

    >>> allowed(TemplateField(name="d", type="enum", enum=["a", "b"], description="Which"))
    'a; b'
    """
    return "; ".join(field.enum) if field.enum else _FORMS.get(field.type, "")


def sheet_lines(run_id: str, lines: Sequence[ValueLine], decisions: Mapping[Place, Decision]) -> list[SheetLine]:
    """A line for each value: open before decided, disagreements first, then what is unclear, then by documents."""

    def made(line: ValueLine) -> SheetLine:
        decision = decisions.get(line.place, OPEN)
        return SheetLine(line, decision, Key.of(run_id, line, decision))

    return sorted((made(line) for line in lines), key=_urgency)


def _urgency(line: SheetLine) -> tuple[bool, int]:
    status = line.line.found.status
    urgency = _FIRST_TO_SEE.index(status) if status in _FIRST_TO_SEE else len(_FIRST_TO_SEE)
    return line.decision.answer is not Answer.OPEN, urgency


def _said(finding: Finding | None, second: Finding | None) -> Value | None:
    """The value; of a candidate without one what it says instead."""
    if finding is None:
        return None
    if finding.value is None and second is not None:
        return f"[{finding.status.replace('_', ' ')}]"
    return finding.value
