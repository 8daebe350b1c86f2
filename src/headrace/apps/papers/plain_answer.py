"""Read what a weak model answered in plain words: the claim in it, cut down to words that the text holds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headrace.apps.papers.dates import dates_in
from headrace.apps.papers.evidence import Claim
from headrace.apps.papers.locate import align
from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.result import Alignment, Status
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField
from headrace.apps.papers.wording import STOP_WORDS, normal_form, stem, stems

#: Longer answers are sentences, of which only the part that answers is the value.
SHORT_ANSWER_WORDS = 6

_SILENT = re.compile(
    r"(?:not|none|never)\s+(?:reported|stated|given|mentioned|specified|said|available|provided|known|described|found)\b"
    r"|(?:unknown|none|unspecified|no information|no data|nothing|n/?a)\b\W*$"
    r"|.{0,40}\b(?:does|do|did|is|was|were|are|has|have)(?: not|n't)\s+(?:been )?(?:say|state|mention|report|give|specif|known)"
)
_INAPPLICABLE = re.compile(r"not applicable\b")
_WORD = re.compile(r"\w+(?:[-'’./]\w+)*|[%°]\w*")


def read_answer(field: TemplateField, answer: str, sentences: Sequence[Sentence]) -> Claim:
    """The claim in an answer of one line.

    >>> field = TemplateField(name="funder", type="text", description="Who paid for the study")
    >>> text = [Sentence(1, "The work was funded by the Sleep Fund.", 0, 38, 1)]
    >>> read_answer(field, "The work was funded by the Sleep Fund.", text).value
    'Sleep Fund'
    >>> read_answer(field, "Not reported.", text).status
    <Status.NOT_REPORTED: 'not_reported'>
    """
    words = normal_form(answer)
    if not words or _SILENT.match(words):
        return Claim(Status.NOT_REPORTED)
    if _INAPPLICABLE.match(words):
        return Claim(Status.NOT_APPLICABLE)
    match field.type:
        case "number" | "integer":
            return Claim(Status.FOUND, _first_held(field, _numbers(answer), sentences) or answer)
        case "date":
            dates = [found.text for found in dates_in(answer)]
            return Claim(Status.FOUND, _first_held(field, dates, sentences) or answer)
        case "text":
            return Claim(Status.FOUND, _words_of_text(field, answer, sentences))
        case _:
            return Claim(Status.FOUND, answer)


def _numbers(answer: str) -> list[str]:
    return [" ".join([str(number.value), number.unit]).strip() for number in numbers_in(answer)]


def _first_held(field: TemplateField, candidates: Sequence[str], sentences: Sequence[Sentence]) -> str | None:
    """A weak model rambles on behind its answer: the first candidate that the text holds is meant."""
    from headrace.apps.papers.values import UnfitValueError, fit

    for candidate in candidates:
        try:
            value = fit(field, candidate)
        except UnfitValueError:
            continue
        if value is not None and any(
            align(field, value, sentence.text).alignment is not Alignment.NONE for sentence in sentences
        ):
            return candidate
    return None


def _words_of_text(field: TemplateField, answer: str, sentences: Sequence[Sentence]) -> str:
    answer = re.split(r"(?<=[a-z)])\.\s+(?=[A-Z])", answer.strip(), maxsplit=1)[0].rstrip(". ")
    if len(answer.split()) <= SHORT_ANSWER_WORDS and not _begins_like_a_sentence(field, answer):
        return answer
    run = max((_longest_run(answer, sentence.line) for sentence in sentences), key=len, default=[])
    piece = _telling_piece(field, run)
    return piece or answer


def _begins_like_a_sentence(field: TemplateField, answer: str) -> bool:
    words = [stem(word) for word in normal_form(answer).split()]
    own = set(stems(_label(field)))
    return any(word in own for word in words) or words[:1] in (["it"], ["we"])


def _label(field: TemplateField) -> str:
    return f"{field.name.replace('_', ' ')} {field.description}"


def _longest_run(answer: str, line: str) -> list[str]:
    """The longest run of words that answer and line share, as the line writes them."""
    have, wanted = _WORD.findall(line), [normal_form(word) for word in _WORD.findall(answer)]
    folded = [normal_form(word) for word in have]
    best: list[str] = []
    lengths = [0] * (len(wanted) + 1)
    for at, word in enumerate(folded):
        row = [0] * (len(wanted) + 1)
        for other, token in enumerate(wanted):
            if token == word:
                row[other + 1] = lengths[other] + 1
                if row[other + 1] > len(best):
                    best = have[at + 1 - row[other + 1] : at + 1]
        lengths = row
    return best


def _telling_piece(field: TemplateField, run: Sequence[str]) -> str:
    """Cut the run at the words of the question; of the pieces the one with the most to say, without its edges."""
    own = set(stems(_label(field)))
    pieces: list[list[str]] = [[]]
    for word in run:
        if stem(normal_form(word)) in own:
            pieces.append([])
        else:
            pieces[-1].append(word)
    best = max(pieces, key=lambda piece: sum(normal_form(word) not in STOP_WORDS for word in piece))
    while best and normal_form(best[0]) in STOP_WORDS:
        best = best[1:]
    while best and normal_form(best[-1]) in STOP_WORDS:
        best = best[:-1]
    return " ".join(best)
