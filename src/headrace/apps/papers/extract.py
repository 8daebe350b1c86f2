"""One document, one template, one model: the result with its evidence."""

from __future__ import annotations

import asyncio

from headrace.apps.papers.asking import PLAIN, Answers, LanguageModel, Material
from headrace.apps.papers.documents.model import Document
from headrace.apps.papers.numbered import ask_numbered
from headrace.apps.papers.plain_wordings import PLAIN_FIRST, PLAIN_SECOND
from headrace.apps.papers.plainly import ask_plainly
from headrace.apps.papers.result import Asking, DocumentResult, FieldResult, RowResult
from headrace.apps.papers.template import Template
from headrace.apps.papers.wordings import FIRST, SECOND


async def extract_document(document: Document, template: Template, llm: LanguageModel) -> DocumentResult:
    """Extract the fields and rows of `template` from `document`.

    A capable model is asked for all fields of a part at once, a weak one (`llm.style` is `plain`) field by field.
    Equal documents, templates and models ask equal questions, so a repeated extraction reuses the paid answers.
    Raises what the model's provider raises; everything wrong with an answer is a field that is `unclear`.
    """
    material = await asyncio.to_thread(Material.of, document)
    answers = await ask(llm, template, material)
    first = asking_of(llm)
    return DocumentResult(
        document_id=document.document_id,
        name=document.name,
        fields={name: placed(document, found) for name, found in answers.fields.items()},
        rows={group: [_placed_row(document, row) for row in rows] for group, rows in answers.rows.items()},
        row_notes=answers.row_notes,
        pages=len(document.pages),
        characters=len(document.text),
        chunks=answers.chunks,
        reader=document.reader,
        model=first.model,
        prompt_version=first.prompt_version,
        asked=(first,),
        template=template.name,
        template_version=template.version,
        template_digest=template.digest,
        usage=answers.usage,
        notes=document.notes,
    )


async def ask(llm: LanguageModel, template: Template, material: Material, *, second: bool = False) -> Answers:
    """Ask a model in the way that suits it; `second` takes the other wording of the same questions."""
    if llm.style == PLAIN:
        return await ask_plainly(llm, template, material, wording=PLAIN_SECOND if second else PLAIN_FIRST)
    return await ask_numbered(llm, template, material, wording=SECOND if second else FIRST)


def asking_of(llm: LanguageModel, *, second: bool = False) -> Asking:
    """Who is asked and how, for the record of the run."""
    plain = PLAIN_SECOND if second else PLAIN_FIRST
    wording = plain if llm.style == PLAIN else SECOND if second else FIRST
    return Asking(
        model=llm.model_name,
        provider=getattr(llm, "provider_name", ""),
        prompt_version=wording.version,
        prompt_digest=wording.digest,
    )


def placed(document: Document, found: FieldResult) -> FieldResult:
    """The result with the section of its quote, and where it stands on its pages."""
    if found.char_start is None or found.char_end is None:
        return found
    section = document.section_of(found.char_start)
    boxes = tuple(tuple(box) for box in document.boxes(found.char_start, found.char_end))
    return found.model_copy(update={"section": section.title or section.kind if section else None, "boxes": boxes})


def _placed_row(document: Document, row: RowResult) -> RowResult:
    return {name: placed(document, found) for name, found in row.items()}
