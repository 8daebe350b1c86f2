"""Which sentences a weak model is shown for a field: all of a short document, or the few that can hold the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headrace.apps.papers.chunks import estimated_tokens
from headrace.apps.papers.dates import dates_in
from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField
from headrace.apps.papers.units import measure

#: Estimated tokens of text shown at once; of a longer document the most relevant sentences. A weak model's context
#: would hold more, but it loses the thread: about twenty sentences is what it can read.
SHOWN_TOKENS = 500
_WORD = re.compile(r"[^\W\d_]{2,}")
#: Sentences shown where the closest one did not help.
FEW = 3


def views(field: TemplateField, sentences: Sequence[Sentence], scores: Sequence[float]) -> Iterator[list[int]]:
    """Indexes of the sentences to show, one list for each time the field is asked.

    Numbers with a unit and dates are asked closely from the start: few sentences hold one, and a weak model mistakes
    every other number for it. Everything else is first asked beside the whole text.
    """
    able = _able(field, sentences)
    if field.type == "date" or measure(field.unit or "") is not None:
        yield _closest(able, scores, 1)
        if len(able) > 1:
            yield _closest(able, scores, FEW)
        return
    yield _fitting(sentences, scores)
    if field.type != "list" and len(sentences) > 1 and any(scores):
        yield _closest(able, scores, 1)


def speaks_of(field: TemplateField, sentences: Sequence[Sentence]) -> bool:
    """Whether the text holds anything of the field's kind: a date, or a number in such a unit."""
    return bool(_able(field, sentences))


def _able(field: TemplateField, sentences: Sequence[Sentence]) -> list[int]:
    kind = measure(field.unit or "")
    if field.type == "date":
        return [at for at, sentence in enumerate(sentences) if any(dates_in(sentence.text))]
    if kind is not None:
        return [at for at, sentence in enumerate(sentences) if _holds_kind(sentence, kind[0])]
    return list(range(len(sentences)))


def _holds_kind(sentence: Sentence, kind: str) -> bool:
    return any((measured := measure(number.unit)) and measured[0] == kind for number in numbers_in(sentence.text))


def _closest(able: Sequence[int], scores: Sequence[float], limit: int) -> list[int]:
    return sorted(sorted(able, key=lambda at: (-scores[at], at))[:limit])


def _fitting(sentences: Sequence[Sentence], scores: Sequence[float]) -> list[int]:
    """All sentences; of a longer text its beginning, which sums a paper up, and the most relevant of the rest."""
    costs = [estimated_tokens(sentence.line) for sentence in sentences]
    if sum(costs) <= SHOWN_TOKENS:
        return list(range(len(sentences)))
    worded = [at for at, sentence in enumerate(sentences) if len(_WORD.findall(sentence.text)) > 1]
    beginning = _within(worded, costs, SHOWN_TOKENS // 2, skip=False)
    room = SHOWN_TOKENS - sum(costs[at] for at in beginning)
    rest = sorted((at for at in worded if at not in beginning), key=lambda at: (-scores[at], at))
    return sorted(beginning + _within(rest, costs, room, skip=True))


def _within(order: Sequence[int], costs: Sequence[int], room: int, *, skip: bool) -> list[int]:
    """As many as fit, in this order; with `skip`, a sentence that does not fit is passed over."""
    kept: list[int] = []
    for at in order:
        if costs[at] <= room:
            kept.append(at)
            room -= costs[at]
        elif not skip:
            break
    return kept
