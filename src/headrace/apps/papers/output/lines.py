"""Every value of a run as one line, with what tells it from all others: the same for tables, sheets and pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.apps.papers.output.model import Row
from headrace.apps.papers.result import Candidate, DocumentResult, FieldResult
from headrace.apps.papers.rows import row_name
from headrace.apps.papers.template import Template, TemplateField

#: Hex digits of a value's digest: two values of one place are never taken for each other.
DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value belongs: a document, a group and row of it (empty and 0 for its own fields), a field."""

    document_id: str
    group: str
    row: int
    field: str


@dataclass(frozen=True, slots=True)
class ValueLine:
    """One value of one document, and what made it."""

    place: Place
    #: The document's file of today.
    name: str
    #: What people call the row; empty for a field of the document itself.
    row_name: str
    field: TemplateField
    found: FieldResult
    result: DocumentResult

    @property
    def candidates(self) -> tuple[Candidate, Candidate] | None:
        """What the first and the second extraction say, where they disagree."""
        both = self.found.candidates
        return (both[0], both[1]) if len(both) == 2 else None

    @property
    def agreement(self) -> str:
        """`agreed`, `disagreed`, or nothing where the document was asked once."""
        return {True: "agreed", False: "disagreed", None: ""}[self.found.agreed]

    @property
    def digest(self) -> str:
        """Of all that a person verifies: value, status and quote, and those of both candidates; offsets left out."""
        said: list[Any] = [self.place.document_id, self.place.group, self.place.row, self.place.field]
        findings = (self.found, *self.found.candidates)
        said += [[finding.value, finding.status.value, finding.quote] for finding in findings]
        text = json.dumps(said, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def lines_of(template: Template, rows: Sequence[Row]) -> Iterator[ValueLine]:
    """The values of all extracted documents, in the order of documents, fields, and rows."""
    for row in rows:
        if row.result is None:
            continue
        names = _row_names(template, row.result)
        for cell in row.result.cells():
            place = Place(row.document_id, cell.group, cell.row, cell.field)
            field = template.field_at(cell.group, cell.field)
            yield ValueLine(place, row.name, names.get((cell.group, cell.row), ""), field, cell.found, row.result)


def _row_names(template: Template, result: DocumentResult) -> dict[tuple[str, int], str]:
    return {
        (group.name, number): row_name(group, row)
        for group in template.rows
        for number, row in enumerate(result.rows.get(group.name, ()), start=1)
    }
