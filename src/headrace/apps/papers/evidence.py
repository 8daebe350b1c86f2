"""From what a model claims to a field result that stands on the text.

A value is `found` only with a sentence that exists. Texts, numbers, dates and lists must also stand in that sentence
(exactly, normalised or fuzzily); for categories and yes/no the sentence itself is the evidence. Anything else is
`unclear`, with a note: a claim that the text does not bear out is no proof that the document is silent.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from headrace.apps.papers.hints import PREFERENCE
from headrace.apps.papers.locate import NO_MATCH, Match, align, locate
from headrace.apps.papers.result import FieldResult, Status
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField, Value
from headrace.apps.papers.values import UnfitValueError, fit

#: A cited sentence may miss its neighbour by so many places.
NEARBY = 2
_MUST_STAND_THERE = frozenset({"text", "number", "integer", "date", "list"})


@dataclass(frozen=True, slots=True)
class Claim:
    """What a model says about one field."""

    status: Status
    value: object = None
    #: The sentences it names as evidence; empty lets the code search.
    cited: tuple[Sentence, ...] = ()
    note: str = ""


def settle(
    field: TemplateField,
    claim: Claim,
    sentences: Sequence[Sentence],
    *,
    relevance: Sequence[float] | None = None,
    preferred: Set[int] = frozenset(),
) -> FieldResult:
    """Check a claim against the sentences that the model was shown, and take quote, page and offsets from them.

    Where several hold the value, `relevance` (0 to 1, one per sentence) decides, and the numbers of `preferred` ones.

    >>> field = TemplateField(name="n", type="integer", description="How many")
    >>> settle(field, Claim(Status.FOUND, "64"), [Sentence(1, "We saw 64 adults.", 0, 17, 1)]).quote
    'We saw 64 adults.'
    >>> settle(field, Claim(Status.FOUND, "65"), [Sentence(1, "We saw 64 adults.", 0, 17, 1)]).status
    <Status.UNCLEAR: 'unclear'>
    """
    if claim.status in (Status.NOT_REPORTED, Status.NOT_APPLICABLE):
        return FieldResult(status=claim.status, note=claim.note)
    try:
        value = fit(field, claim.value)
    except UnfitValueError as error:
        return _unclear(claim, None, NO_MATCH, str(error))
    if value is None:
        return _unclear(claim, None, NO_MATCH, "" if claim.note else "the model gave no value")
    if isinstance(value, list):
        return _settle_list(field, claim, value, sentences)
    place = _Places(field, value, preferred).find(claim, sentences, relevance)
    if place is None:
        return _without_place(field, claim, value)
    sentence, match = place
    note = claim.note if sentence in claim.cited or not claim.cited else "found beside the sentences the model named"
    if claim.status is Status.UNCLEAR:
        return _with_quote(Status.UNCLEAR, value, sentence, match, claim.note or "the model is not sure")
    return _with_quote(Status.FOUND, value, sentence, match, note)


@dataclass(frozen=True, slots=True)
class _Places:
    """Looks for the sentence that a value is quoted from."""

    field: TemplateField
    value: Value
    preferred: Set[int]

    def find(
        self, claim: Claim, sentences: Sequence[Sentence], relevance: Sequence[float] | None
    ) -> tuple[Sentence, Match] | None:
        found = self._in(claim.cited)
        if found is None and self.field.type not in _MUST_STAND_THERE and claim.cited:
            hinted = (sentence for sentence in claim.cited if sentence.number in self.preferred)
            return next(hinted, claim.cited[0]), NO_MATCH
        if found is None and claim.cited and self.field.type != "text":
            # The same number far from the cited sentences is most likely another quantity.
            return self._in([sentence for sentence in sentences if _is_near(sentence, claim.cited)])
        return found or self._in(sentences, relevance)

    def _in(
        self, sentences: Sequence[Sentence], relevance: Sequence[float] | None = None
    ) -> tuple[Sentence, Match] | None:
        if relevance is None and self.preferred:
            relevance = [PREFERENCE if sentence.number in self.preferred else 0.0 for sentence in sentences]
        return locate(self.field, self.value, sentences, relevance=relevance)


def _is_near(sentence: Sentence, cited: Sequence[Sentence]) -> bool:
    return any(abs(sentence.number - other.number) <= NEARBY for other in cited)


def _without_place(field: TemplateField, claim: Claim, value: Value) -> FieldResult:
    if not claim.cited:
        return _unclear(claim, None, NO_MATCH, f"the model answered {_short(value)}, which the text does not hold")
    match = align(field, value, claim.cited[0].text)
    return _unclear(claim, value, match, match.note or "the value does not stand in the sentence the model named")


def _unclear(claim: Claim, value: Value | None, match: Match, note: str) -> FieldResult:
    note = "; ".join(filter(None, [note, claim.note]))
    if claim.cited:
        return _with_quote(Status.UNCLEAR, value, claim.cited[0], match, note)
    return FieldResult(status=Status.UNCLEAR, note=note)


def _with_quote(status: Status, value: Value | None, sentence: Sentence, match: Match, note: str) -> FieldResult:
    return FieldResult(
        value=value,
        status=status,
        quote=sentence.text,
        page=sentence.page,
        char_start=sentence.char_start,
        char_end=sentence.char_end,
        alignment=match.alignment,
        note=note,
    )


def _settle_list(field: TemplateField, claim: Claim, items: list[str], sentences: Sequence[Sentence]) -> FieldResult:
    """Keep the items that stand in the text; the quote is the sentence that holds the most of them."""
    item_field = field.model_copy(update={"type": "text"})
    places = {item: locate(item_field, item, claim.cited) or locate(item_field, item, sentences) for item in items}
    held = {item: place for item, place in places.items() if place is not None}
    missing = [item for item in items if item not in held]
    note = "; ".join(filter(None, [f"not in the text: {_short(', '.join(missing))}" if missing else "", claim.note]))
    if not held:
        return _unclear(Claim(claim.status, None, claim.cited), None, NO_MATCH, note)
    where = [sentence for sentence, _ in held.values()]
    best = max(where, key=lambda sentence: (where.count(sentence), -sentence.number))
    others = sorted({sentence.number for sentence in where if sentence is not best})
    if others:
        pages = sorted({sentence.page for sentence in where})
        note = "; ".join(filter(None, [note, f"items stand in {len(others) + 1} sentences, pages {pages}"]))
    worst = min((match for _, match in held.values()), key=lambda match: match.score)
    status = Status.UNCLEAR if claim.status is Status.UNCLEAR else Status.FOUND
    return _with_quote(status, list(held), best, Match(worst.alignment), note)


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 120 else text[:117] + "…"
