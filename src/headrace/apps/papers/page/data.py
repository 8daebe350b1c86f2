"""What the page shows, as JSON for its script: an index, and the values and the text of each document by themselves.

The script decodes a document when somebody opens it, so a page of a thousand papers opens like one of ten. Texts are
cut here into marked and plain parts: offsets count characters as Python does, and a browser counts in another way.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.apps.papers.output.cells import shown
from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.output.model import Report, Row
from headrace.apps.papers.page.marks import Part, Span, around, cut, within
from headrace.apps.papers.page.places import where
from headrace.apps.papers.page.texts import DocumentText
from headrace.apps.papers.result import Finding, Status
from headrace.apps.papers.review.decisions import OPEN, REPORTED, Answer, Decision

#: Texts of all documents together; beyond, the longest are shortened to the surroundings of their quotes.
MAX_CHARS = 20_000_000
#: A browser lays out longer texts slowly.
MAX_DOCUMENT_CHARS = 1_000_000
#: Of a shortened text so much is kept on both sides of a quote.
REACH = 300

_NOT_IN_SCRIPTS = re.compile("[<>&\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_LOST = "This quote does not stand in the text as it is read today; look it up in the document."


def script_json(value: Any) -> str:
    """JSON that means the same within a script element of HTML: no markup, no half characters.

    >>> script_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _NOT_IN_SCRIPTS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def index_of(report: Report, lines: Sequence[Sequence[ValueLine]], decisions: Mapping[Place, Decision]) -> Any:
    """The documents with what became of their values, and the template."""
    return {
        "statuses": [status.value for status in Status],
        "fields": {name: _fields(fields) for name, fields in _groups(report)},
        "documents": [
            _document(row, values, decisions) for row, values in zip(report.rows, lines, strict=True)
        ],
    }  # fmt: skip


def _groups(report: Report) -> Iterator[tuple[str, Sequence[Any]]]:
    yield "", report.template.fields
    for group in report.template.rows:
        yield group.name, group.fields


def _fields(fields: Sequence[Any]) -> dict[str, Any]:
    return {field.name: [field.description, field.unit or ""] for field in fields}


def _document(row: Row, values: Sequence[ValueLine], decisions: Mapping[Place, Decision]) -> dict[str, Any]:
    answers = Counter(decisions.get(line.place, OPEN).answer.value for line in values)
    about = [f"also {name}" for name in row.duplicates]
    if row.result is not None:
        about += [f"read by {row.result.reader}", *row.result.notes]
        about += [f"{group}: {note}" for group, note in row.result.row_notes.items()]
    return {
        "id": row.document_id,
        "name": row.name,
        "problem": "" if row.result is not None else f"{row.reason}: {row.message}" if row.message else row.reason,
        "counts": Counter(line.found.status.value for line in values),
        "decided": sum(count for answer, count in answers.items() if answer != Answer.OPEN),
        "about": about,
    }


@dataclass
class DocumentData:
    """The values and the text of one document, and the marks that join them."""

    lines: Sequence[ValueLine]
    text: DocumentText | None
    decisions: Mapping[Place, Decision]
    marks: list[Span] = field(default_factory=list)

    def values(self) -> list[dict[str, Any]]:
        """Every value with its evidence; a mark is the number of its place in the text."""
        return [self._value(line) for line in self.lines]

    def _value(self, line: ValueLine) -> dict[str, Any]:
        told = {"group": line.place.group, "row": line.place.row, "name": line.row_name, "field": line.field.name}
        told |= self._finding(line.found) | {"agreement": line.agreement}
        if line.candidates is not None:
            told["candidates"] = [{**self._finding(one), "by": one.by} for one in line.candidates]
        decision = self.decisions.get(line.place, OPEN)
        if decision.answer is not Answer.OPEN:
            told["review"] = _review(decision)
        return told

    def _finding(self, finding: Finding) -> dict[str, Any]:
        told: dict[str, Any] = {"status": finding.status.value, "value": shown(finding.value)}
        if finding.quote:
            told |= {"quote": finding.quote, "where": where(finding, self.text), "section": finding.section or ""}
            told["alignment"] = finding.alignment.value
            mark = self._mark(finding)
            told |= {"mark": mark} if mark is not None else {"lost": _LOST} if self.text is not None else {}
        return told | ({"note": finding.note} if finding.note else {})

    def _mark(self, finding: Finding) -> int | None:
        start, end = finding.char_start, finding.char_end
        if self.text is None or start is None or end is None or not self.text.holds(finding.quote, start, end):
            return None
        self.marks.append((start, end))
        return len(self.marks) - 1

    def pages(self, *, whole: bool) -> dict[str, Any]:
        """The text in pages, cut at the marks of `values`; `whole` or only around the quotes."""
        text = self.text
        if text is None:
            return {"missing": "The text of this document is not at hand: the file was moved, changed or removed."}
        spans = [(0, len(text.text))] if whole else around(self.marks, REACH, len(text.text))
        starts = [page.char_start for page in text.pages]
        ends = [*starts[1:], len(text.text)]
        pages = []
        for page, start, end in zip(text.pages, starts, ends, strict=True):
            parts = self._parts(text.text, within(spans, (start, end)), (start, end))
            if parts:
                pages.append({"number": page.number, "parts": parts})
        return {"pages": pages, "shortened": not whole}

    def _parts(self, text: str, spans: Sequence[Span], page: Span) -> list[Part | None]:
        """The parts of a page; None stands for text that is left out."""
        parts: list[Part | None] = []
        at = page[0]
        for start, end in spans:
            if start > at:
                parts.append(None)
            parts += cut(text, self.marks, (start, end))
            at = end
        if parts and at < page[1]:
            parts.append(None)
        return parts


def _review(decision: Decision) -> dict[str, str]:
    says = shown(decision.value) if decision.says == REPORTED else decision.says.replace("_", " ")
    edited = {"value": says} if decision.answer is Answer.EDITED or decision.candidate else {}
    return {"answer": decision.answer.value, "by": decision.reviewer, "comment": decision.comment, **edited}


def whole_texts(rows: Sequence[Row], limit: int = MAX_CHARS) -> frozenset[str]:
    """Ids of the documents whose texts the page holds whole: the shortest first, as long as there is room."""
    sizes = sorted((row.result.characters, row.document_id) for row in rows if row.result is not None)
    kept, room = set(), limit
    for size, document_id in sizes:
        room -= size
        if size > MAX_DOCUMENT_CHARS or room < 0:
            break
        kept.add(document_id)
    return frozenset(kept)
