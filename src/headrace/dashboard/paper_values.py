"""Values of papers as a page shows them: what was extracted, its places, what is decided, and what may be chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.apps.papers.desk import LookedDocument, LookedValue
from headrace.apps.papers.output.cells import shown
from headrace.apps.papers.result import Alignment, Finding, Status
from headrace.apps.papers.review.decisions import REPORTED, Answer, Decision
from headrace.apps.papers.review.edits import SILENT
from headrace.apps.papers.review.sheet import allowed
from headrace.dashboard.quotes import Excerpt, excerpt
from headrace.dashboard.words import word

#: A longer value is corrected by writing it anew.
MOST_PREFILLED = 500
STATUSES = {
    Status.FOUND: (word("found"), "good"), Status.NOT_REPORTED: (word("not reported"), ""),
    Status.UNCLEAR: (word("unclear"), "warn"), Status.NOT_APPLICABLE: (word("not applicable"), ""),
    Status.NEEDS_REVIEW: (word("two extractions differ"), "bad"),
}  # fmt: skip
ALIGNMENTS = {
    Alignment.EXACT: word("letter by letter"), Alignment.NORMALISED: word("in another notation"),
    Alignment.FUZZY: word("by most of its words"), Alignment.NONE: word("as evidence without the value"),
}  # fmt: skip
ANSWERS = {
    Answer.ACCEPTED: (word("accepted"), "good"), Answer.EDITED: (word("corrected"), "good"),
    Answer.REJECTED: (word("rejected"), "bad"), Answer.OPEN: (word("commented"), ""),
}  # fmt: skip


def told_value(document: LookedDocument, value: LookedValue) -> dict[str, Any]:
    """Return a value as the page shows it."""
    line = value.line
    both = line.candidates or ()
    return {
        "name": value.name, "row_name": line.row_name, "field": line.field, "found": line.found,
        "status": STATUSES[line.found.status], "alignment": ALIGNMENTS[line.found.alignment],
        "says": shown(line.found.value), "agreed": line.found.agreed, "place": excerpt(line.found, document.text),
        "candidates": list(_candidates(document, both)), "decision": value.decision,
        "answer": _answer(value.decision), "verified": says(value.decision), "prefilled": _prefilled(value),
        "allowed": allowed(line.field), "choices": _choices(value),
    }  # fmt: skip


def _candidates(document: LookedDocument, both: Sequence[Any]) -> Iterator[tuple[str, str, str, Excerpt | None]]:
    """Yield what each of two extractions says: which, the value or the status, who, and its place."""
    for which, one in zip(("first", "second"), both, strict=False):
        yield which, _said(one), one.by, excerpt(one, document.text)


def _said(finding: Finding) -> str:
    return f"[{finding.status.replace('_', ' ')}]" if finding.value is None else shown(finding.value)


def _answer(decision: Decision) -> tuple[str, str] | None:
    return ANSWERS[decision.answer] if decision.answer is not Answer.OPEN or decision.comment else None


def says(decision: Decision) -> str:
    """Return what is verified of a value; empty where nothing is.

    >>> says(Decision(Answer.EDITED, 38, "reported")), says(Decision(Answer.EDITED, None, "not_reported"))
    ('38', '[not reported]')
    """
    if decision.says in ("", REPORTED):
        return shown(decision.value)
    return f"[{decision.says.replace('_', ' ')}]"


def _prefilled(value: LookedValue) -> str:
    text = says(value.decision) or shown(value.line.found.value)
    return text if len(text) <= MOST_PREFILLED else ""


def _choices(value: LookedValue) -> list[str]:
    """Return what may be chosen in place of a value."""
    field = value.line.field
    return [*(("true", "false") if field.type == "boolean" else field.enum), *SILENT]
