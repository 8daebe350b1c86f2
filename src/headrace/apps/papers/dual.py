"""Dual extraction: two answers to the same questions, compared field by field by code.

Where both say the same, and one of them can show where it stands, the value is found and `agreed`. Where they differ,
nothing is found: the field `needs_review` and holds both candidates with their quotes, for a person to decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace import InvalidInputError
from headrace.apps.papers.asking import Answers, LanguageModel
from headrace.apps.papers.errors import DualError
from headrace.apps.papers.locate import Match
from headrace.apps.papers.result import Candidate, DocumentResult, FieldResult, Finding, RowResult, Status
from headrace.apps.papers.rows import pair_rows
from headrace.apps.papers.sameness import same_value
from headrace.apps.papers.template import RowGroup, Template, TemplateField

#: Ask the same model in two wordings.
PROMPTS = "prompts"
NO_SUCH_ROW = "this extraction has no such row"


@dataclass(frozen=True, slots=True)
class Second:
    """Who is asked besides: another model, or the same one in other words."""

    llm: LanguageModel
    other_words: bool = False


def second_of(llm: LanguageModel, dual: str | None) -> Second | None:
    """What `--dual` names: None, `prompts`, or a configured model. Raises DualError, ConfigError."""
    if dual is None:
        return None
    if dual == PROMPTS:
        return Second(llm, other_words=True)
    using = getattr(llm, "using", None)
    if using is None:
        raise DualError(f"--dual must be {PROMPTS!r}, for only one model is configured, got {dual!r}")
    try:
        # Nameless is the first model itself: nothing that a second opinion could come from.
        other: LanguageModel | None = using(dual) if dual else None
    except (KeyError, InvalidInputError):
        other = None
    if other is None:
        raise DualError(
            f"--dual must be {PROMPTS!r} or NAME of a table [llm.models.NAME] of the settings, got {dual!r}"
        )
    if _identity(other) == _identity(llm):
        raise DualError(
            f"--dual must name another model than that of [llm], which would only give its own answers again, "
            f"got {dual!r} ({other.model_name}); name another, or {PROMPTS!r}"
        )
    return Second(other)


def _identity(llm: LanguageModel) -> tuple[str, str]:
    """What decides whose stored answers are reused."""
    return getattr(llm, "provider_name", ""), llm.model_name


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers about one document, and what people call those who gave them."""

    first: Answers
    second: Answers
    names: tuple[str, str]

    def compared(self, template: Template) -> Answers:
        """One answer: what both say, and where they differ both candidates."""
        fields = {
            field.name: self._field(field, self.first.fields[field.name], self.second.fields[field.name])
            for field in template.fields
        }
        rows, notes = {}, {}
        for group in template.rows:
            rows[group.name], notes[group.name] = self._rows(group)
        return Answers(
            fields,
            self.first.usage + self.second.usage,
            max(self.first.chunks, self.second.chunks),
            rows=rows,
            row_notes={name: note for name, note in notes.items() if note},
        )

    def _rows(self, group: RowGroup) -> tuple[list[RowResult], str]:
        both = (self.first, self.second)
        note = "; ".join(dict.fromkeys(filter(None, (one.row_notes.get(group.name) for one in both))))
        asked = [one for one in both if one.rows_asked]
        if len(asked) < 2:
            return (asked[0].rows[group.name] if asked else []), note
        pairs = pair_rows(group, self.first.rows[group.name], self.second.rows[group.name])
        return [self._row(group, one, other) for one, other in pairs], note

    def _row(self, group: RowGroup, one: RowResult | None, other: RowResult | None) -> RowResult:
        absent = {field.name: FieldResult(status=Status.NOT_REPORTED, note=NO_SUCH_ROW) for field in group.fields}
        one, other = one or absent, other or absent
        return {field.name: self._field(field, one[field.name], other[field.name]) for field in group.fields}

    def _field(self, field: TemplateField, one: FieldResult, other: FieldResult) -> FieldResult:
        if agree(field, one, other):
            better = max((one, other), key=lambda found: (found.status is Status.FOUND, Match(found.alignment).score))
            return better.model_copy(update={"agreed": True})
        candidates = tuple(_candidate(found, by) for found, by in zip((one, other), self.names, strict=True))
        note = " or ".join(f"{_said(found)} ({found.by})" for found in candidates)
        return FieldResult(status=Status.NEEDS_REVIEW, agreed=False, candidates=candidates, note=note)


def agree(field: TemplateField, one: Finding, other: Finding) -> bool:
    """Whether two findings say the same: equal values, of which one at least is found, or equally no value.

    >>> field = TemplateField(name="n", type="integer", description="How many")
    >>> agree(field, Finding(status=Status.FOUND, value=3), Finding(status=Status.UNCLEAR, value=3))
    True
    >>> agree(field, Finding(status=Status.FOUND, value=3), Finding(status=Status.NOT_REPORTED))
    False
    """
    if not same_value(field, one.value, other.value):
        return False
    return one.status is other.status or (one.value is not None and Status.FOUND in (one.status, other.status))


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One entry of the queue that a person works off."""

    document_id: str
    name: str
    #: Empty for a field of the document itself.
    group: str
    #: Number of the row in its group, from 1; 0 for a field of the document itself.
    row: int
    field: str
    first: Candidate
    second: Candidate


def queue_of(results: Mapping[str, DocumentResult] | Sequence[DocumentResult]) -> tuple[Disagreement, ...]:
    """Every disagreement of these results, in the order of documents, fields and rows."""
    listed = results.values() if isinstance(results, Mapping) else results
    return tuple(
        Disagreement(result.document_id, result.name, cell.group, cell.row, cell.field, *cell.found.candidates)
        for result in listed
        for cell in result.cells()
        if cell.found.status is Status.NEEDS_REVIEW and len(cell.found.candidates) == 2
    )


def _candidate(found: FieldResult, by: str) -> Candidate:
    return Candidate(**{name: getattr(found, name) for name in Finding.model_fields}, by=by)


def _said(found: Finding) -> str:
    if found.value is None:
        return found.status.replace("_", " ")
    text = "; ".join(found.value) if isinstance(found.value, list) else str(found.value)
    return text if len(text) <= 80 else text[:79] + "…"
