"""A short plain answer turned into a value by code: a weak model says "It was about 1,250 plants.", we keep 1250."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from headrace.llm.fields import Kind, Question
from headrace.llm.validation import InvalidAnswerError

Value = str | int | float | bool | list["Value"] | None

_ABSENT = re.compile(
    r"(?i)(none|null|n/?a|unknown|nothing|no answer"
    r"|.*\b(not|n't|never|no)\b.*\b(stated?|mention(ed)?|specif(y|ied)|report(ed)?|given|provided?|sa(y|id)|known?)\b.*)"
)
_LEAD = re.compile(r"(?i)^(short )?answer\s*[:=-]\s*")
_DIGITS = re.compile(r"-?\d+(?:[,'\u202f]\d{3})*(?:\.\d+)?")
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_IN_WORDS: Mapping[str, int] = {
    **{word: number for number, word in enumerate(_SMALL)},
    **{word: 10 * number for number, word in enumerate(_TENS, start=2)},
    **{
        f"{ten}{joint}{unit}": 10 * tens + units
        for tens, ten in enumerate(_TENS, start=2)
        for units, unit in enumerate(_SMALL[1:10], start=1)
        for joint in "- "
    },
    "hundred": 100,
    "thousand": 1000,
}
_WORDS = re.compile(rf"\b({'|'.join(sorted(_IN_WORDS, key=len, reverse=True))})\b", re.IGNORECASE)
_SEPARATORS = re.compile(r"\s*[,;]\s*(?:and\s+)?|\s+and\s+")


def coerce(question: Question, text: str) -> Value:
    """The value this answer gives the question's field. Raises InvalidAnswerError that says what was wanted."""
    said = _LEAD.sub("", text.strip()).strip("\"'“” ")
    if question.is_optional and (not said or _ABSENT.fullmatch(said.rstrip("."))):
        return None
    return _COERCIONS[question.kind](question, said)


def _text(question: Question, said: str) -> str:
    if not said:
        raise InvalidAnswerError(["the answer is empty"])
    return said[:-1] if said.endswith(".") and said.count(".") == 1 else said


def _number(question: Question, said: str) -> int | float:
    digits, words = _DIGITS.search(said), _WORDS.search(said)
    if digits and (not words or digits.start() < words.start()):
        plain = re.sub(r"[,'\u202f]", "", digits.group())
        return float(plain) if "." in plain else int(plain)
    if words:
        return _IN_WORDS[words.group().lower()]
    raise InvalidAnswerError([f"the answer must hold a number, got {said[:80]!r}"])


def _yes_or_no(question: Question, said: str) -> bool:
    found = re.search(r"\b(yes|true|no|false|not)\b", said.lower())
    if found is None:
        raise InvalidAnswerError([f"the answer must be yes or no, got {said[:80]!r}"])
    return found.group() in ("yes", "true")


def _choice(question: Question, said: str) -> str:
    lowered = said.lower().rstrip(".")
    for option in question.choices:
        if option.lower() == lowered:
            return option
    places = [(_place(option, lowered), -len(option), option) for option in question.choices]
    found = min((place for place in places if place[0] >= 0), default=None)
    if found is None:
        raise InvalidAnswerError([f"the answer must be one of {', '.join(question.choices)}, got {said[:80]!r}"])
    return found[2]


def _place(option: str, text: str) -> int:
    """Where the option stands in the text as a whole word; `_` and spaces are the same."""
    words = re.escape(option.lower().replace("_", " "))
    match = re.search(rf"(?<!\w){words}(?!\w)", text.replace("_", " "))
    return match.start() if match else -1


def _list(question: Question, said: str) -> list[Value]:
    parts = [part for part in _SEPARATORS.split(said.rstrip(".")) if part]
    if question.choices:
        return [_choice(question, part) for part in parts]
    return list(parts)


_COERCIONS: Mapping[Kind, Callable[[Question, str], Value]] = {
    Kind.TEXT: _text,
    Kind.NUMBER: _number,
    Kind.YES_NO: _yes_or_no,
    Kind.CHOICE: _choice,
    Kind.LIST: _list,
}
