"""Categories and yes/no read from the words of the text, for models that cannot be trusted to choose.

Measured on the local model: right in 5 of 11 yes/no questions, whatever the text said. The words do better: a category
counts where a sentence names it, a yes where a sentence uses the words of the field, a no where it also denies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from headrace.apps.papers.locate import locate
from headrace.apps.papers.relevance import Relevance
from headrace.apps.papers.result import Alignment, FieldResult, Status
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField, Value
from headrace.apps.papers.wording import is_negation, stem, stems, tokens

#: So many words before a word a "not" still denies it …
REACH = 4
#: … and behind it so many, if the "not" belongs to a verb: "samples of it were not".
REACH_BEHIND = 5
_VERBS = frozenset({"is", "are", "was", "were", "be", "been", "has", "have", "had", "did", "does", "do"})
#: A sentence speaks of a yes/no field when it holds so much of the weight of the words of its name.
SHARE = 0.5
#: The category must be so much better named than the next one.
LEAD = 0.5


def decide_by_words(field: TemplateField, sentences: Sequence[Sentence], relevance: Relevance) -> FieldResult:
    """The value that the wording bears out, with its sentence; unclear where it bears out none or several.

    >>> field = TemplateField(name="design", type="enum", enum=("randomised", "observational"), description="Design")
    >>> text = [Sentence(1, "Pots were assigned at random.", 0, 29, 1)]
    >>> decide_by_words(field, text, Relevance(text)).value
    'randomised'
    """
    decide = _yes_or_no if field.type == "boolean" else _category
    return decide(field, sentences, relevance)


def _category(field: TemplateField, sentences: Sequence[Sentence], relevance: Relevance) -> FieldResult:
    scores = relevance.scores(field)
    named: list[tuple[float, str, Sentence, Alignment]] = []
    for choice in field.enum:
        open_to = [at for at, sentence in enumerate(sentences) if not _denied(stems(choice), sentence)]
        place = locate(field, choice, [sentences[at] for at in open_to], relevance=[scores[at] for at in open_to])
        if place is not None:
            sentence, match = place
            named.append((match.score, choice, sentence, match.alignment))
    if not named:
        return FieldResult(status=Status.UNCLEAR, note=f"no sentence names one of: {', '.join(field.enum)}")
    best = max(named, key=lambda item: item[0])
    rivals = [choice for score, choice, *_ in named if score >= best[0] - LEAD]
    if len(rivals) > 1:
        return FieldResult(status=Status.UNCLEAR, note=f"the text names several: {', '.join(rivals)}")
    return _found(best[1], best[2], best[3])


def _yes_or_no(field: TemplateField, sentences: Sequence[Sentence], relevance: Relevance) -> FieldResult:
    words = stems(field.name.replace("_", " "))
    shares = relevance.shares([field.name.replace("_", " ")])
    scores = relevance.scores(field)
    at = max(range(len(sentences)), key=lambda at: (shares[at], scores[at], -at), default=None)
    if at is None or shares[at] < SHARE:
        return FieldResult(status=Status.UNCLEAR, note=f"no sentence uses the words: {field.name.replace('_', ' ')}")
    return _found(not _denied(words, sentences[at]), sentences[at], Alignment.FUZZY)


def _denied(words: Sequence[str], sentence: Sentence) -> bool:
    """Whether a "no" or "not" shortly before one of the words denies it, or a verb with "not" behind it."""
    said = tokens(sentence.text)
    places = [at for at, token in enumerate(said) if stem(token) in words]
    return any(_denied_at(said, at) for at in places)


def _denied_at(said: Sequence[str], at: int) -> bool:
    if any(is_negation(token) for token in said[max(0, at - REACH) : at]):
        return True
    behind = said[at + 1 : at + 1 + REACH_BEHIND]
    return any(verb in _VERBS and is_negation(token) for verb, token in pairwise(behind))


def _found(value: Value, sentence: Sentence, alignment: Alignment) -> FieldResult:
    return FieldResult(
        value=value,
        status=Status.FOUND,
        quote=sentence.text,
        page=sentence.page,
        char_start=sentence.char_start,
        char_end=sentence.char_end,
        alignment=alignment,
        note="read from the wording",
    )
