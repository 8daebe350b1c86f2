"""One document, one template, one model: the result with its evidence."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from headrace.apps.papers.asking import PLAIN, Answers, LanguageModel, Material
from headrace.apps.papers.documents.model import Document
from headrace.apps.papers.dual import Pair, Second
from headrace.apps.papers.numbered import ask_numbered
from headrace.apps.papers.plain_wordings import PLAIN_FIRST, PLAIN_SECOND
from headrace.apps.papers.plainly import ask_plainly
from headrace.apps.papers.result import Asking, DocumentResult, FieldResult
from headrace.apps.papers.template import Template
from headrace.apps.papers.wordings import FIRST, SECOND


async def extract_document(
    document: Document, template: Template, llm: LanguageModel, *, second: Second | None = None
) -> DocumentResult:
    """Extract the fields and rows of `template` from `document`; with `second` twice, and compare.

    A capable model is asked for all fields of a part at once, a weak one (`llm.style` is `plain`) field by field.
    Equal documents, templates and models ask equal questions, so a repeated extraction reuses the paid answers.
    Raises what the model's provider raises; everything wrong with an answer is a field that is `unclear`.
    """
    material = await asyncio.to_thread(Material.of, document)
    asked = [asking_of(llm)]
    answers = await ask(llm, template, material)
    answers = _placed(document, answers)
    if second is not None:
        asked.append(asking_of(second.llm, other_words=second.other_words))
        other = await ask(second.llm, template, material, other_words=second.other_words)
        names = (f"{asked[0].model}, {asked[0].prompt_version}", f"{asked[1].model}, {asked[1].prompt_version}")
        answers = Pair(answers, _placed(document, other), names).compared(template)
    return DocumentResult(
        document_id=document.document_id,
        name=document.name,
        fields=answers.fields,
        rows=answers.rows,
        row_notes=answers.row_notes,
        pages=len(document.pages),
        characters=len(document.text),
        chunks=answers.chunks,
        reader=document.reader,
        model=asked[0].model,
        prompt_version=asked[0].prompt_version,
        asked=tuple(asked),
        template=template.name,
        template_version=template.version,
        template_digest=template.digest,
        usage=answers.usage,
        notes=document.notes,
    )


async def ask(llm: LanguageModel, template: Template, material: Material, *, other_words: bool = False) -> Answers:
    """Ask a model in the way that suits it; `other_words` takes the other wording of the same questions."""
    if llm.style == PLAIN:
        return await ask_plainly(llm, template, material, wording=PLAIN_SECOND if other_words else PLAIN_FIRST)
    return await ask_numbered(llm, template, material, wording=SECOND if other_words else FIRST)


def asking_of(llm: LanguageModel, *, other_words: bool = False) -> Asking:
    """Who is asked and how, for the record of the run."""
    plain = PLAIN_SECOND if other_words else PLAIN_FIRST
    wording = plain if llm.style == PLAIN else SECOND if other_words else FIRST
    return Asking(
        model=llm.model_name,
        provider=getattr(llm, "provider_name", ""),
        prompt_version=wording.version,
        prompt_digest=wording.digest,
    )


def _placed(document: Document, answers: Answers) -> Answers:
    """The answers, each quote with its section and where it stands on its pages."""

    def placed(results: dict[str, FieldResult]) -> dict[str, FieldResult]:
        return {name: _place(document, found) for name, found in results.items()}

    rows = {group: [placed(row) for row in rows] for group, rows in answers.rows.items()}
    return replace(answers, fields=placed(answers.fields), rows=rows)


def _place(document: Document, found: FieldResult) -> FieldResult:
    if found.char_start is None or found.char_end is None:
        return found
    section = document.section_of(found.char_start)
    boxes = tuple(tuple(box) for box in document.boxes(found.char_start, found.char_end))
    return found.model_copy(update={"section": section.title or section.kind if section else None, "boxes": boxes})
