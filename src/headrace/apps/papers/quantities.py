"""Numbers and measures in running text: 1,200 and 1 200, −5.2, 3.1 × 10⁻³, 1.2 million, twenty-four, 81 %.

Where a notation is ambiguous (1.200, or "12 200") every reading is given: the caller only compares them with a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

# fmt: off
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
# fmt: on
_UNITS_OF_WORDS = {word: value for value, word in enumerate(_SMALL)}
_TENS = {
    word: 10 * tens
    for tens, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2)
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_WORD = "|".join([*_UNITS_OF_WORDS, *_TENS])
_SCALE = "|".join(_SCALES)
_SPACE = "[ \u00a0\u2009\u202f]"
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")

_DIGITS = re.compile(
    rf"(?<![\w.,])(?P<sign>[-–+](?=\d)|−{_SPACE}?(?=\d))?(?<![^\W\d][-−–])"
    rf"(?P<body>\d{{1,3}}(?:{_SPACE}\d{{3}})+(?!\d)(?:[.,]\d+)?|\d[\d.,'’]*\d|\d|(?<!\w)\.\d+)"
    rf"(?:[eE](?P<exp>[-+−]?\d{{1,3}})|{_SPACE}?[×x·*]{_SPACE}?10(?:\^?(?P<power>[-−+]?\d{{1,3}})|(?P<raised>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)))?"
    rf"(?:\s(?P<scale>{_SCALE})s?\b)?"
)
_WORDS = re.compile(
    rf"\b(?:a\s(?={_SCALE}))?(?:{_WORD}|{_SCALE})(?:(?:[-\s]|\sand\s)(?:{_WORD}|{_SCALE}))*\b", re.IGNORECASE
)
_UNIT_WORD = r"[A-Za-zµμΩÅ][A-Za-zµμΩÅ²³]*"
_UNIT = re.compile(
    rf"{_SPACE}?[-–]?(?P<unit>%|‰|per\s?cent\b|°\s?[CFK]\b"
    rf"|{_UNIT_WORD}\d?(?:\s?[/·]\s?{_UNIT_WORD}\d?|{_SPACE}{_UNIT_WORD}(?:⁻[¹²³]|[-−]\d))*)"
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands in a text, in one of its readings."""

    value: Decimal
    #: As written, without its unit.
    text: str
    start: int
    end: int
    #: The word or sign right behind it, which may be a unit or not; empty if there is none.
    unit: str = ""


def numbers_in(text: str) -> Iterator[Number]:
    """Every number of a text, in order, each in all its readings.

    >>> [str(number.value) for number in numbers_in("1,200 of −5.2 mg in twenty-four rats, 3 × 10⁻² and COVID-19")]
    ['1200', '1.200', '-5.2', '24', '0.03']
    """
    digits = list(_written_in_digits(text))
    taken = [(number.start, number.end) for number in digits]
    words = [word for word in _written_in_words(text) if not any(start <= word.start < end for start, end in taken)]
    yield from sorted([*digits, *words], key=lambda number: number.start)


def parse_number(text: str) -> Decimal | None:
    """The number a short text consists of, with or without a unit; None if it holds none.

    >>> parse_number("about 1,200 kg"), parse_number("none")
    (Decimal('1200'), None)
    """
    return next((number.value for number in numbers_in(text)), None)


def _written_in_digits(text: str) -> Iterator[Number]:
    for match in _DIGITS.finditer(text):
        factor = _factor(match)
        unit = _unit_behind(text, match.end())
        for digits, end in _readings(match["body"], match):
            value = _decimal(digits)
            if value is not None:
                value = (-value if (match["sign"] or "")[:1] in ("-", "−", "–") and match["sign"] else value) * factor
                yield Number(value, text[match.start() : end], match.start(), end, unit)


def _readings(body: str, match: re.Match[str]) -> list[tuple[str, int]]:
    """What the digits may mean, the likelier first, with the end of what was read."""
    end = match.end()
    plain = re.sub(rf"{_SPACE}|['’]", "", body.rstrip(".,"))
    both = "," in plain and "." in plain
    if both:
        decimal_mark = max(plain.rfind(","), plain.rfind("."))
        return [(re.sub(r"[.,]", "", plain[:decimal_mark]) + "." + plain[decimal_mark + 1 :], end)]
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3}){2,}", plain)
    readings = [re.sub(r"[.,]", "", plain)] if grouped else []
    if plain.count(",") + plain.count(".") <= 1:
        readings.append(plain.replace(",", "."))
    if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", plain):
        readings.append(plain.replace(".", ""))
    found = [(reading, end) for reading in readings]
    first = re.split(_SPACE, body)
    if len(first) > 1:  # "in week 12 200 people": two numbers, read as one above
        at = match.start("body")
        found.append((first[0], at + len(first[0])))
        found.append((first[-1], end))
    return found


def _factor(match: re.Match[str]) -> Decimal:
    power = match["exp"] or match["power"] or (match["raised"] or "0").translate(_SUPERSCRIPT)
    scale = _SCALES[match["scale"].lower()] if match["scale"] else 1
    return Decimal(10) ** int(power.replace("−", "-")) * scale


def _decimal(digits: str) -> Decimal | None:
    try:
        return Decimal(digits)
    except InvalidOperation:
        return None


def _written_in_words(text: str) -> Iterator[Number]:
    for match in _WORDS.finditer(text):
        words = re.findall(r"[a-z]+", match[0].lower())
        yield Number(_of_words(words), match[0], match.start(), match.end(), _unit_behind(text, match.end()))


def _of_words(words: list[str]) -> Decimal:
    total = current = 0
    for word in words:
        if word in _SCALES and word != "hundred":
            total, current = total + max(current, 1) * _SCALES[word], 0
        elif word == "hundred":
            current = max(current, 1) * 100
        else:
            current += _UNITS_OF_WORDS.get(word, 0) + _TENS.get(word, 0)
    return Decimal(total + current)


def _unit_behind(text: str, end: int) -> str:
    match = _UNIT.match(text, end)
    return " ".join(match["unit"].split()) if match else ""
