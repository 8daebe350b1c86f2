"""Whether a value stands in a piece of text, and in which sentence it stands best.

The quote, its page and its offsets come from the sentence that is returned here, never from a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from headrace.apps.papers.dates import dates_in
from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.result import Alignment
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField, Value
from headrace.apps.papers.units import in_unit
from headrace.apps.papers.wording import STOP_WORDS, common_subsequence, is_negation, stem, stems, tokens

#: Of the words of a value so many must stand in the sentence, in order, for a fuzzy match …
FUZZY_SHARE = 0.75
#: … and of the words between the first and the last of them so many must be matched.
FUZZY_DENSITY = 1 / 3
MAX_FUZZY_TOKENS = 200

# Exact and normalised are nearly the same; fuzzy never beats them, whatever is added for closeness and relevance.
_WEIGHT = {Alignment.EXACT: 2.1, Alignment.NORMALISED: 2.0, Alignment.FUZZY: 0.5, Alignment.NONE: 0.0}


@dataclass(frozen=True, slots=True)
class Match:
    """How a value agrees with a text."""

    alignment: Alignment
    #: Within the same alignment: 0 (loose) to 1 (tight).
    closeness: float = 1.0
    note: str = ""

    @property
    def score(self) -> float:
        """For comparing matches: a better alignment always wins, then the closer one."""
        return _WEIGHT[self.alignment] + 0.4 * self.closeness


NO_MATCH = Match(Alignment.NONE, 0.0)


def align(field: TemplateField, value: Value, text: str) -> Match:
    """How `value` agrees with `text`, by the rules of the field's type.

    >>> field = TemplateField(name="n", type="integer", description="How many")
    >>> align(field, 1200, "We enrolled 1,200 adults.").alignment
    <Alignment.NORMALISED: 'normalised'>
    """
    match field.type:
        case "number" | "integer":
            return _align_number(field, Decimal(str(value)), text)
        case "date":
            return _align_date(str(value), text)
        case "boolean":
            return _align_boolean(field, text)
        case "list":
            return _align_list(value if isinstance(value, list) else [str(value)], text)
        case _:
            return align_text(str(value), text)


def locate(
    field: TemplateField, value: Value, sentences: Sequence[Sentence], *, relevance: Sequence[float] | None = None
) -> tuple[Sentence, Match] | None:
    """The sentence in which the value stands best; None where it stands nowhere.

    `relevance` (0 to 1 per sentence) decides between sentences that hold the same value; without it the first wins.
    """
    best: tuple[float, Sentence, Match] | None = None
    for index, sentence in enumerate(sentences):
        found = align(field, value, sentence.text)
        if found.alignment is Alignment.NONE:
            continue
        # A 24 in the sentence that speaks of the field beats a 24 elsewhere, even if this one is written in words.
        score = found.score + (relevance[index] if relevance is not None else 0.0)
        if best is None or score > best[0]:
            best = (score, sentence, found)
    return None if best is None else best[1:]


def align_text(value: str, text: str) -> Match:
    """Exact, then in normal form, then by most of its words.

    >>> align_text("double blind", "A Double-Blind trial").alignment
    <Alignment.NORMALISED: 'normalised'>
    """
    value, line = " ".join(value.split()), " ".join(text.split())
    if value and re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(value)}(?!\w)(?![.,]\d)", line):
        return Match(Alignment.EXACT)
    wanted, have = _plain_tokens(value), _plain_tokens(line)
    if not wanted:
        return NO_MATCH
    if any(have[at : at + len(wanted)] == wanted for at in range(len(have) - len(wanted) + 1)):
        return Match(Alignment.NORMALISED)
    return _fuzzy(wanted[:MAX_FUZZY_TOKENS], have[: 2 * MAX_FUZZY_TOKENS])


@lru_cache(maxsize=10_000)  # every field of a document looks at the same sentences
def _plain_tokens(text: str) -> tuple[str, ...]:
    """Tokens with number words as digits: "six weeks" and "6 weeks" are the same."""
    return tuple(_as_digits(token) for token in tokens(text))


def _as_digits(token: str) -> str:
    number = next(numbers_in(token), None) if token.isalpha() else None
    return str(number.value) if number is not None and number.text == token else token


def _fuzzy(wanted: Sequence[str], have: Sequence[str]) -> Match:
    wanted_stems, have_stems = [stem(token) for token in wanted], [stem(token) for token in have]
    if len(set(wanted_stems) & set(have_stems)) < FUZZY_SHARE * len(set(wanted_stems)):
        return NO_MATCH  # far the most sentences; the table below is not needed for them
    pairs = common_subsequence(wanted_stems, have_stems)
    matched = {i for i, _ in pairs}
    missed = [token for i, token in enumerate(wanted) if i not in matched]
    # "12 weeks of training" must not be found in "10 weeks of training", nor "not blinded" in "blinded".
    if any(token[0].isdigit() or is_negation(token) for token in missed):
        return NO_MATCH
    if all(wanted[i] in STOP_WORDS for i in matched) or len(matched) < FUZZY_SHARE * len(wanted):
        return NO_MATCH
    density = len(pairs) / (pairs[-1][1] - pairs[0][1] + 1)
    if density < FUZZY_DENSITY:
        return NO_MATCH
    return Match(Alignment.FUZZY, len(matched) / len(wanted) * density)


def _align_number(field: TemplateField, value: Decimal, text: str) -> Match:
    clash = ""
    best = NO_MATCH
    for number in numbers_in(text):
        given = in_unit(number.value, number.unit, field.unit)
        if given is None and number.value == value:
            clash = f"the text says {number.text} {number.unit}, the field is in {field.unit}"
        if given is None or not _agree(given, value, converted=given != number.value):
            continue
        literal = number.value == value and number.text == str(value)
        found = Match(Alignment.EXACT if literal else Alignment.NORMALISED)
        best = max(best, found, key=lambda match: match.score)
    return best if best.alignment is not Alignment.NONE else Match(Alignment.NONE, 0.0, clash)


def _agree(given: Decimal, value: Decimal, *, converted: bool) -> bool:
    if given == value or not converted:
        return given == value
    # 18 days are 2.5714… weeks: a converted number may be rounded, but not to a whole.
    digits = value.as_tuple().exponent
    rounded = isinstance(digits, int) and -12 < digits < 0 and round(given, -digits) == value
    return rounded or abs(given - value) <= abs(given) / 10**6


def _align_date(value: str, text: str) -> Match:
    if re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", text):
        return Match(Alignment.EXACT)
    # A date in the text may be more precise than the value, never less.
    matches = any(found.iso == value or found.iso.startswith(value + "-") for found in dates_in(text))
    return Match(Alignment.NORMALISED) if matches else NO_MATCH


def _align_boolean(field: TemplateField, text: str) -> Match:
    """Yes and no do not stand in texts; a sentence that uses the words of the field speaks of it."""
    wanted = set(stems(field.name.replace("_", " ")))
    share = len(wanted & set(stems(text))) / len(wanted) if wanted else 0.0
    return Match(Alignment.FUZZY, share) if share >= 0.5 else NO_MATCH


def _align_list(items: Sequence[str], text: str) -> Match:
    """As good as the worst of its items; what matters is that every item stands there."""
    return min((align_text(item, text) for item in items), key=lambda match: match.score, default=NO_MATCH)
