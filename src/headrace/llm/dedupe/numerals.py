"""The numbers in a normalised name: digits, roman numerals, number words and Chinese numerals, as one sequence."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from headrace.llm.dedupe.number_words import NUMBER_WORDS


class Form(NamedTuple):
    """A normalised name as it is compared with others."""

    #: The name with every number written in digits.
    text: str
    #: Its numbers in order, and the letter it ends with, if it ends with a lone one. Names that differ here are never
    #: similar: `Budapest II` and `Budapest III`, `Terminal A` and `Terminal B` are two places each.
    numerals: tuple[str, ...]


_ROMAN = re.compile(r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
#: Words of everyday languages that could be read as roman numerals.
_NO_ROMANS = frozenset({"c", "d", "l", "m", "ci", "di", "dim", "li", "mi", "mil", "mix", "mm"})
_HAN_DIGITS = {**{digit: value for value, digit in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000}
_HAN_NUMBER = re.compile(f"[{''.join(_HAN_DIGITS)}{''.join(_HAN_UNITS)}]+")
_NUMBER = re.compile(r"\d+")
#: int() refuses longer ones, and nobody counts that far.
_LONGEST_NUMBER = 30


@lru_cache(maxsize=100_000)
def form_of(key: str) -> Form:
    """Return how a normalised name is compared.

    >>> form_of("budapest ii")
    Form(text='budapest 2', numerals=('2',))
    >>> form_of("第二十三中学")
    Form(text='第23中学', numerals=('23',))
    >>> form_of("terminal b").numerals
    ('b',)
    """
    words = key.split(" ")
    text = " ".join(_in_digits(words))
    last = words[-1]
    is_label = len(words) > 1 and len(last) == 1 and last.isascii() and last.isalpha() and text.endswith(last)
    return Form(text, (*_NUMBER.findall(text), *([last] if is_label else [])))


def _in_digits(words: list[str]) -> list[str]:
    """The words with their numbers in digits; twenty one is 21."""
    written: list[str] = []
    before = 0
    for word in words:
        value = NUMBER_WORDS.get(word, 0)
        if before in range(20, 100, 10) and 1 <= value <= 9:
            written[-1] = str(before + value)
        else:
            written.append(_with_digits(word))
        before = value
    return written


def _with_digits(word: str) -> str:
    """The word, or its number; numbers lose their leading zeros."""
    if word in NUMBER_WORDS:
        return str(NUMBER_WORDS[word])
    if word and word not in _NO_ROMANS and _ROMAN.fullmatch(word):
        return str(_roman(word))
    if not word.isascii():
        word = _HAN_NUMBER.sub(lambda found: str(_han(found.group())), word)
    return _NUMBER.sub(lambda found: _plain(found.group()), word)


def _plain(digits: str) -> str:
    """The same number without leading zeros, in ASCII digits."""
    return str(int(digits)) if len(digits) <= _LONGEST_NUMBER else digits


def _roman(word: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in word]
    return sum(-value if value < max(values[place:]) else value for place, value in enumerate(values))


def _han(number: str) -> int | str:
    """The value of a Chinese numeral: 二十三 is 23; digits without units, as 二〇二四, are read one by one."""
    if not any(sign in _HAN_UNITS for sign in number):
        return "".join(str(_HAN_DIGITS[sign]) for sign in number)
    total = section = digit = 0
    for sign in number:
        unit = _HAN_UNITS.get(sign, 0)
        if not unit:
            digit = _HAN_DIGITS[sign]
        elif unit == 10_000:
            total, section, digit = total + max(section + digit, 1) * unit, 0, 0
        else:
            section, digit = section + max(digit, 1) * unit, 0
    return total + section + digit
