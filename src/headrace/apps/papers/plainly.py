"""The way to ask a weak model: one field at a time, plainly, and code finds the place of the answer.

A worked form, then the text, then the label of the field, which the model goes on to fill in. Where an answer does not
stand in the text, the field is asked once more beside the few sentences that speak of it most. Categories and yes/no
are read from the words of the text (see `by_words`): a small model's choice among options is close to chance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.apps.papers.asking import Answers, LanguageModel, counted
from headrace.apps.papers.by_words import decide_by_words
from headrace.apps.papers.evidence import settle
from headrace.apps.papers.plain_answer import read_answer
from headrace.apps.papers.relevance import Relevance
from headrace.apps.papers.result import FieldResult, Status, TokenCount
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.showing import speaks_of, views
from headrace.apps.papers.template import Template, TemplateField
from headrace.apps.papers.wording import stems

ANSWER_TOKENS = 32
LIST_TOKENS = 64

# Every kind of question once. A weak model repeats what it cannot answer: the values are such as papers rarely hold.
_EXAMPLE_TEXT = (
    "The bridge over the Ouse was opened on 3 May 1894 for farm traffic. It is 210 metres long and made of steel. About"
    " 9,000 cars cross it on a working day. It was closed for two months while the deck was replaced. The repairs were"
    " paid for by the county."
)
_EXAMPLE_FORM = (
    "When the bridge was opened: 3 May 1894\nWhat the bridge was built for: farm traffic\n"
    "How long the bridge is: 210 metres\nHow many cars cross the bridge on a day: 9,000\n"
    "How long the bridge was closed: two months\nWho paid for the repairs: the county"
)


@dataclass
class _Questions:
    """Asks one document's questions and adds up what they cost."""

    llm: LanguageModel
    usage: TokenCount = field(default_factory=TokenCount)

    async def ask(self, label: str, shown: Sequence[Sentence], limit: int) -> str:
        """The rest of the line that begins with the label."""
        text = " ".join(sentence.line for sentence in shown)
        messages = [
            {"role": "user", "content": f"Text: {_EXAMPLE_TEXT}"},
            {"role": "assistant", "content": _EXAMPLE_FORM},
            {"role": "user", "content": f"Text: {text}"},
            {"role": "assistant", "content": f"{label}:"},
        ]
        completion = await self.llm.complete_detailed(messages=messages, stop="\n", max_tokens=limit)
        self.usage += counted(completion.usage)
        line = completion.text.strip().partition("\n")[0]
        # Some servers give the beginning of the line back with its end.
        begun = line.lower().startswith(f"{label}:".lower())
        return line[len(label) + 1 :].strip() if begun else line.strip()


async def ask_plainly(llm: LanguageModel, template: Template, sentences: Sequence[Sentence]) -> Answers:
    """Ask field by field. The text stands before the label: what all fields of a document share is cached."""
    relevance = Relevance(sentences)
    questions = _Questions(llm)
    fields: dict[str, FieldResult] = {}
    for item in template.fields:
        fields[item.name] = await _field(questions, item, _Text(sentences, relevance, tuple(fields.values())))
    return Answers(fields, questions.usage)


@dataclass(frozen=True)
class _Text:
    """What is known of the document when a field is asked."""

    sentences: Sequence[Sentence]
    relevance: Relevance
    #: The results of the fields asked before.
    known: tuple[FieldResult, ...]


async def _field(questions: _Questions, item: TemplateField, text: _Text) -> FieldResult:
    scores = text.relevance.scores(item)
    if item.type in ("enum", "boolean"):
        return await asyncio.to_thread(decide_by_words, item, text.sentences, text.relevance)
    if not speaks_of(item, text.sentences):
        kind = "date" if item.type == "date" else f"number in {item.unit}"
        return FieldResult(status=Status.NOT_REPORTED, note=f"the text holds no {kind}")
    first: FieldResult | None = None
    for shown in views(item, text.sentences, scores):
        seen = [text.sentences[at] for at in shown]
        limit = LIST_TOKENS if item.type == "list" else ANSWER_TOKENS
        answer = await questions.ask(item.plain_label, seen, limit)
        result = await asyncio.to_thread(_judge, item, answer, seen, text)
        if result.status is Status.FOUND:
            return result
        first = first or result
    return first or FieldResult(status=Status.NOT_REPORTED, note="the document holds no sentence")


def _judge(item: TemplateField, answer: str, seen: Sequence[Sentence], text: _Text) -> FieldResult:
    scores = text.relevance.scores(item)
    result = settle(item, read_answer(item, answer, seen), text.sentences, scores)
    if result.status is not Status.FOUND or not _repeats(item, result, text, scores):
        return result
    note = f"the model answered {result.value!r} for another field too, and no sentence ties it to this one"
    return FieldResult(status=Status.UNCLEAR, note=note)


def _repeats(item: TemplateField, result: FieldResult, text: _Text, scores: Sequence[float]) -> bool:
    """A weak model without an answer repeats what the text is about, which is the answer to another field."""
    if item.type != "text":
        return False
    words = set(stems(str(result.value)))
    earlier = [set(stems(known.value)) for known in text.known if isinstance(known.value, str)]
    if not any(words <= other for other in earlier):
        return False
    # A sentence that holds the words and speaks of this field makes the repetition a fact of the document.
    return not any(score and words <= set(stems(one.text)) for one, score in zip(text.sentences, scores, strict=True))
