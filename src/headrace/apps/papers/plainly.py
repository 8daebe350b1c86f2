"""The way to ask a weak model: one field at a time, plainly, and code finds the place of the answer.

A worked form, then the text, then the label of the field, which the model goes on to fill in. Where an answer does not
stand in the text, the field is asked once more beside the few sentences that speak of it most. Categories and yes/no
are read from the words of the text (see `by_words`): a small model's choice among options is close to chance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.apps.papers.asking import Answers, LanguageModel, Material, counted
from headrace.apps.papers.by_words import decide_by_words
from headrace.apps.papers.evidence import settle
from headrace.apps.papers.plain_answer import read_answer
from headrace.apps.papers.plain_wordings import PLAIN_FIRST, PlainWording
from headrace.apps.papers.relevance import Relevance
from headrace.apps.papers.result import FieldResult, Status, TokenCount
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.showing import speaks_of, views
from headrace.apps.papers.template import Template, TemplateField
from headrace.apps.papers.wording import stems

ANSWER_TOKENS = 32
LIST_TOKENS = 64

#: A small model mixes the rows of a table up, and nothing in its answers would tell.
NO_ROWS = "rows were not asked for: the model is asked plainly, and a weak model mixes up what belongs to which row"


@dataclass
class _Questions:
    """Asks one document's questions and adds up what they cost."""

    llm: LanguageModel
    wording: PlainWording
    usage: TokenCount = field(default_factory=TokenCount)

    async def ask(self, label: str, shown: Sequence[Sentence], limit: int) -> str:
        """The rest of the line that begins with the label."""
        text = " ".join(sentence.line for sentence in shown)
        messages = [
            {"role": "user", "content": f"Text: {self.wording.text}"},
            {"role": "assistant", "content": self.wording.form},
            {"role": "user", "content": f"Text: {text}"},
            {"role": "assistant", "content": f"{label}:"},
        ]
        completion = await self.llm.complete_detailed(messages=messages, stop="\n", max_tokens=limit)
        self.usage += counted(completion.usage)
        line = completion.text.strip().partition("\n")[0]
        # Some servers give the beginning of the line back with its end.
        begun = line.lower().startswith(f"{label}:".lower())
        return line[len(label) + 1 :].strip() if begun else line.strip()


async def ask_plainly(
    llm: LanguageModel, template: Template, material: Material, *, wording: PlainWording = PLAIN_FIRST
) -> Answers:
    """Ask field by field. The text stands before the label: what all fields of a document share is cached."""
    relevance = Relevance(material.sentences)
    questions = _Questions(llm, wording)
    fields: dict[str, FieldResult] = {}
    for item in template.fields:
        fields[item.name] = await _field(questions, item, _Text(material, relevance, tuple(fields.values())))
    names = [group.name for group in template.rows]
    return Answers(
        fields,
        questions.usage,
        rows={name: [] for name in names},
        row_notes=dict.fromkeys(names, NO_ROWS),
        rows_asked=False,
    )


@dataclass(frozen=True)
class _Text:
    """What is known of the document when a field is asked."""

    material: Material
    relevance: Relevance
    #: The results of the fields asked before.
    known: tuple[FieldResult, ...]

    @property
    def sentences(self) -> Sequence[Sentence]:
        return self.material.sentences

    def scores(self, item: TemplateField) -> Sequence[float]:
        """How much each sentence speaks of a field, 0 to 1."""
        return self.material.hints.boosted(item, self.relevance.scores(item))


async def _field(questions: _Questions, item: TemplateField, text: _Text) -> FieldResult:
    scores = text.scores(item)
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
    scores = text.scores(item)
    result = settle(item, read_answer(item, answer, seen), text.sentences, relevance=scores)
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
