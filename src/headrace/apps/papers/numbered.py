"""The way to ask a capable model: it sees numbered sentences and answers each field with value and sentence numbers.

One call per part of the document, for its fields and its rows alike. Numbers of sentences cannot be invented into
quotes: code takes the quotes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from headrace.apps.papers.answer_shape import MAX_ROWS, answer_model, field_answers, row_answers
from headrace.apps.papers.asking import Answers, LanguageModel, Material, counted
from headrace.apps.papers.chunks import split_chunks
from headrace.apps.papers.evidence import Claim, settle
from headrace.apps.papers.merge import merge_field
from headrace.apps.papers.result import FieldResult, RowResult, Status, TokenCount
from headrace.apps.papers.rows import merge_rows, says_something
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import Template, TemplateField
from headrace.apps.papers.wording import storable
from headrace.apps.papers.wordings import FIRST, Wording

#: Estimated tokens of one part: most papers are one call, and nothing drowns in the middle of a huge prompt.
CHUNK_TOKENS = 16_000
OVERLAP_SENTENCES = 4


async def ask_numbered(
    llm: LanguageModel, template: Template, material: Material, *, wording: Wording = FIRST
) -> Answers:
    """Ask for all fields at once, part by part, and merge what the parts say."""
    asked = wording.ordered(template)
    parts = split_chunks(material.sentences, budget=CHUNK_TOKENS, overlap=OVERLAP_SENTENCES)
    shape = answer_model(asked)
    said: list[_Said] = []
    usage = TokenCount()
    for number, part in enumerate(parts, start=1):
        heading = f"Part {number} of {len(parts)} of the document:" if len(parts) > 1 else ""
        prompt = wording.prompt(asked, part, heading, material.hints)
        extraction = await llm.extract_detailed(shape, prompt=prompt, system=wording.system_for(asked))
        usage += counted(extraction.usage)
        said.append(await asyncio.to_thread(_settle_part, asked, extraction.value, part, material))
    return _merged(template, said, material, usage)


@dataclass
class _Said:
    """What one part says, settled."""

    fields: dict[str, FieldResult]
    rows: dict[str, list[RowResult]] = field(default_factory=dict)
    unread_rows: dict[str, int] = field(default_factory=dict)
    rows_left_out: set[str] = field(default_factory=set)


def _merged(template: Template, said: Sequence[_Said], material: Material, usage: TokenCount) -> Answers:
    fields = {
        item.name: merge_field(item, [part.fields[item.name] for part in said], preferred=material.prefers(item))
        for item in template.fields
    }
    rows = {group.name: merge_rows(group, [row for part in said for row in part.rows[group.name]])
            for group in template.rows}  # fmt: skip
    in_order = {
        group.name: [{item.name: row[item.name] for item in group.fields} for row in rows[group.name]]
        for group in template.rows
    }
    notes = {group.name: "; ".join(_row_notes(group.name, said)) for group in template.rows}
    return Answers(
        fields, usage, len(said), rows=in_order, row_notes={name: note for name, note in notes.items() if note}
    )


def _row_notes(group: str, said: Sequence[_Said]) -> Iterator[str]:
    unread = sum(part.unread_rows.get(group, 0) for part in said)
    if unread:
        yield f"{unread} rows of the answer could not be read and are left out"
    if any(group in part.rows_left_out for part in said):
        yield f"rows beyond the first {MAX_ROWS} of an answer are left out"


def _settle_part(template: Template, answers: BaseModel, part: Sequence[Sentence], material: Material) -> _Said:
    claims = zip(template.fields, field_answers(answers, template), strict=True)
    said = _Said({item.name: _settled(item, claim, part, material) for item, claim in claims})
    for at, group in enumerate(template.rows):
        given = row_answers(answers, template, at)
        if len(given) > MAX_ROWS:
            said.rows_left_out.add(group.name)
        read = [row for row in given[:MAX_ROWS] if row is not None]
        said.unread_rows[group.name] = len(given[:MAX_ROWS]) - len(read)
        settled = [_settled_row(group.fields, row, part, material) for row in read]
        said.rows[group.name] = [row for row in settled if says_something(row)]
    return said


def _settled_row(
    fields: Sequence[TemplateField], claims: Sequence[Any], part: Sequence[Sentence], material: Material
) -> RowResult:
    return {item.name: _settled(item, claim, part, material) for item, claim in zip(fields, claims, strict=True)}


def _settled(item: TemplateField, answer: Any, part: Sequence[Sentence], material: Material) -> FieldResult:
    by_number = {sentence.number: sentence for sentence in part}
    cited = tuple(by_number[number] for number in answer.sentences if number in by_number)
    note = storable(str(answer.note))[:300] if answer.note else ""
    claim = Claim(Status(answer.status), answer.value, cited, note)
    return settle(item, claim, part, preferred=material.hints.numbers(item))
