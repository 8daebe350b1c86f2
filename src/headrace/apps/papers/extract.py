"""One document, one template, one model: the result with its evidence."""

from __future__ import annotations

import asyncio

from headrace.apps.papers.asking import PLAIN, PROMPT_VERSION, LanguageModel
from headrace.apps.papers.documents.model import Document
from headrace.apps.papers.numbered import ask_numbered
from headrace.apps.papers.plainly import ask_plainly
from headrace.apps.papers.result import DocumentResult
from headrace.apps.papers.sentences import split_document
from headrace.apps.papers.template import Template


async def extract_document(document: Document, template: Template, llm: LanguageModel) -> DocumentResult:
    """Extract the fields of `template` from `document`.

    A capable model is asked for all fields of a part at once, a weak one (`llm.style` is `plain`) field by field.
    Equal documents, templates and models ask equal questions, so a repeated extraction reuses the paid answers.
    Raises what the model's provider raises; everything wrong with an answer is a field that is `unclear`.
    """
    sentences = await asyncio.to_thread(split_document, document)
    ask = ask_plainly if llm.style == PLAIN else ask_numbered
    answers = await ask(llm, template, sentences)
    return DocumentResult(
        document_id=document.document_id,
        name=document.name,
        fields=answers.fields,
        pages=len(document.pages),
        characters=len(document.text),
        chunks=answers.chunks,
        reader=document.reader,
        model=llm.model_name,
        prompt_version=PROMPT_VERSION,
        template=template.name,
        template_version=template.version,
        template_digest=template.digest,
        usage=answers.usage,
        notes=document.notes,
    )
