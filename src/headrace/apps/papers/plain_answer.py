"""Read what a weak model answered in plain words: the claim in it, cut down to words that the text holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headrace.apps.papers.dates import dates_in
from headrace.apps.papers.evidence import Claim
from headrace.apps.papers.locate import align_text
from headrace.apps.papers.quantities import Number, numbers_in
from headrace.apps.papers.result import Alignment, Status
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField
from headrace.apps.papers.units import in_unit, measure
from headrace.apps.papers.wording import STOP_WORDS, normal_form, stem, stems

#: Longer answers are sentences, of which only the part that answers is the value.
SHORT_ANSWER_WORDS = 6

_SILENT = re.compile(
    r"(?:not|none|never)\s+(?:reported|stated|given|mentioned|specified|said|available|provided|known|described|found)\b"
    r"|(?:unknown|none|unspecified|no information|no data|nothing|n/?a)\b\W*$"
    r"|.{0,40}\b(?:does|do|did|is|was|were|are|has|have)(?: not|n't)\s+(?:been )?"
    r"(?:say|state|mention|report|give|specif|known)"
)
_INAPPLICABLE = re.compile(r"not applicable\b")


def read_answer(field: TemplateField, answer: str, sentences: Sequence[Sentence]) -> Claim:
    """The claim in an answer of one line.

    >>> field = TemplateField(name="funder", type="text", description="Who paid for the study")
    >>> text = [Sentence(1, "The work was funded by the Sleep Fund.", 0, 38, 1)]
    >>> read_answer(field, "The study was funded by the Sleep Fund.", text).value
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
            return _number(field, answer, sentences)
        case "date":
            dates = {found.iso for sentence in sentences for found in dates_in(sentence.text)}
            said = [found for found in dates_in(answer) if any(date.startswith(found.iso) for date in dates)]
            # The precise readings come first, but "2017–2018" begins with 2017.
            best = min(said, key=lambda found: (-len(found.iso), found.start), default=None)
            return Claim(Status.FOUND, best.iso if best else answer)
        case "text":
            return Claim(Status.FOUND, _value_in(field, answer, sentences))
        case _:
            return Claim(Status.FOUND, answer)


def _number(field: TemplateField, answer: str, sentences: Sequence[Sentence]) -> Claim:
    """A weak model rambles on behind its answer, and forgets units: the first number that the text holds is meant."""
    kind = measure(field.unit or "")
    held = [number for sentence in sentences for number in _counts_in(sentence.text)]
    if kind is not None:
        held = [number for number in held if (found := measure(number.unit)) and found[0] == kind[0]]
    said = list(numbers_in(answer))
    # A right number with a wrong unit is still the number of the text, which gives the unit.
    for means in (_is_same, _has_same_digits):
        for number in (number for one in said for number in held if means(one, number)):
            unit = number.unit if measure(number.unit) else ""
            return Claim(Status.FOUND, f"{number.value} {unit}".strip())
    return Claim(Status.UNCLEAR, note=f"the model answered {answer[:60]!r}, which the text does not hold")


def _counts_in(text: str) -> Iterator[Number]:
    """The numbers of a text that are no part of a date: the 12 of 12 March is no count."""
    dates = [(found.start, found.start + len(found.text)) for found in dates_in(text) if not found.text.isdigit()]
    return (number for number in numbers_in(text) if not any(start <= number.start < end for start, end in dates))


def _is_same(said: Number, held: Number) -> bool:
    if measure(said.unit) is None or measure(held.unit) is None:
        return said.value == held.value
    return in_unit(said.value, said.unit, held.unit) == held.value


def _has_same_digits(said: Number, held: Number) -> bool:
    return said.value == held.value


def _value_in(field: TemplateField, answer: str, sentences: Sequence[Sentence]) -> str:
    """The part of an answer that is the value: of a sentence, what stands behind the words of the question.

    Of several parts the first that the text holds.
    """
    first = re.split(r"(?<=[a-z0-9)])\.\s+(?=[A-Z])", answer.strip(), maxsplit=1)[0].rstrip(". ")
    clause = re.split(r",\s|;\s|\s\(|\s(?:which|who|that|because|where)\s", first)[0]
    cut = [_telling_piece(field, clause, keep_names=keep) for keep in (True, False)]
    pieces = [piece for piece in cut if piece]
    parts = [*pieces, first] if _is_sentence(field, first) else [first, *pieces]
    return next((part for part in parts if _is_held(part, sentences)), parts[0])


def _is_held(part: str, sentences: Sequence[Sentence]) -> bool:
    return any(align_text(part, sentence.text).alignment is not Alignment.NONE for sentence in sentences)


def _is_sentence(field: TemplateField, answer: str) -> bool:
    """Whether the answer is a sentence rather than a value: it begins like one and repeats the question."""
    words = normal_form(answer).split()
    own = set(stems(_wording(field)))
    return len(words) > SHORT_ANSWER_WORDS or any(word.islower() and stem(word) in own for word in answer.split())


def _wording(field: TemplateField) -> str:
    return f"{field.name.replace('_', ' ')} {field.description}"


def _telling_piece(field: TemplateField, clause: str, *, keep_names: bool) -> str:
    """Cut the clause at the words of the question; of the pieces the one with the most to say, without its edges.

    With `keep_names` a capital keeps its word: the Sleep Fund is a name, though the field is called funder.
    """
    own = set(stems(_wording(field)))
    pieces: list[list[str]] = [[]]
    for word in clause.split():
        if (word.islower() or not keep_names) and stem(normal_form(word)) in own:
            pieces.append([])
        else:
            pieces[-1].append(word)
    best = max(pieces, key=lambda piece: sum(_says_something(word) for word in piece))
    while best and not _says_something(best[0]):
        best = best[1:]
    while best and not _says_something(best[-1]):
        best = best[:-1]
    return " ".join(best)


def _says_something(word: str) -> bool:
    return normal_form(word).strip(".,;:") not in STOP_WORDS
