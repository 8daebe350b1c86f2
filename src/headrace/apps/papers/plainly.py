"""The way to ask a weak model: one field at a time, plainly, and code finds the place of the answer.

A worked form, then the text, then the field's label, which the model continues on its line. Measured on the local
model: five fields in one JSON answer 2 to 3 right, this way 4 to 5; what it makes up does not stand in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.apps.papers.asking import Answers, LanguageModel, counted
from headrace.apps.papers.chunks import estimated_tokens
from headrace.apps.papers.evidence import Claim, settle
from headrace.apps.papers.plain_answer import read_answer
from headrace.apps.papers.relevance import Relevance
from headrace.apps.papers.result import FieldResult, Status, TokenCount
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import Template, TemplateField
from headrace.apps.papers.wording import is_negation, normal_form, stem, stems, tokens

#: Estimated tokens of text shown at once; a longer document is shown by its most relevant sentences.
SHOWN_TOKENS = 1_200
ANSWER_TOKENS = 32
LIST_TOKENS = 64

_EXAMPLE_TEXT = (
    "The bridge over the Ouse was built in 1894. It is 210 metres long and made of steel. About 9,000 cars cross it on"
    " a working day. It was closed for two months in 2011 while the deck was replaced. The county paid for the repairs."
)
_EXAMPLE_FORM = (
    "How long the bridge is: 210 metres\nHow many cars cross the bridge on a day: 9,000\n"
    "What the bridge is made of: steel\nWho paid for the repairs: The county"
)


async def ask_plainly(llm: LanguageModel, template: Template, sentences: Sequence[Sentence]) -> Answers:
    """Ask field by field. The text comes first and is the same for all fields of a short document: it is cached."""
    relevance = Relevance(sentences)
    fields: dict[str, FieldResult] = {}
    usage = TokenCount()
    for field in template.fields:
        shown = _shown(field, sentences, relevance)
        scores = relevance.scores(field)
        claim, cost = await _claim(llm, field, [sentences[at] for at in shown])
        usage += cost
        fields[field.name] = settle(field, claim, [sentences[at] for at in shown], [scores[at] for at in shown])
    return Answers(fields, usage)


def _shown(field: TemplateField, sentences: Sequence[Sentence], relevance: Relevance) -> list[int]:
    costs = [estimated_tokens(sentence.line) for sentence in sentences]
    if sum(costs) <= SHOWN_TOKENS:
        return list(range(len(sentences)))
    scores = relevance.scores(field)
    kept: list[int] = []
    room = SHOWN_TOKENS
    for at in sorted(range(len(sentences)), key=lambda at: (-scores[at], at)):
        if costs[at] <= room:
            kept.append(at)
            room -= costs[at]
    return sorted(kept)


async def _claim(llm: LanguageModel, field: TemplateField, shown: Sequence[Sentence]) -> tuple[Claim, TokenCount]:
    text = " ".join(sentence.line for sentence in shown)
    messages = [
        {"role": "user", "content": f"Text: {_EXAMPLE_TEXT}"},
        {"role": "assistant", "content": _EXAMPLE_FORM},
        {"role": "user", "content": f"Text: {text}"},
        {"role": "assistant", "content": f"{field.label}:"},
    ]
    limit = LIST_TOKENS if field.type == "list" else ANSWER_TOKENS
    completion = await llm.complete_detailed(messages=messages, stop="\n", max_tokens=limit)
    answer = _without_label(completion.text, field)
    return read_answer(field, answer, shown), counted(completion.usage)


def _without_label(text: str, field: TemplateField) -> str:
    # Some servers give the beginning of the line back with its end.
    line = text.strip().split("\n")[0].strip()
    label = f"{field.label}:"
    return line[len(label) :].strip() if line.lower().startswith(label.lower()) else line


_ = (Claim, Status, is_negation, normal_form, stem, stems, tokens)
