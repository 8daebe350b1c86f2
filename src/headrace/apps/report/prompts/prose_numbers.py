"""Numbers in prose, in digits and in words, English and Chinese.

No numbers are ordinals ("first", "2nd", 第三), and "one" and 一 by themselves, which are articles as often ("one of the
causes", 一个原因): they count behind "only" and its like, and within others ("one hundred", 一百). Vague words ("most",
"half", "several", 大部分) are none either; "hundreds" and 几十 are, for they say how large.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple


class Said(NamedTuple):
    """A number as a text says it. `value` None: digits that are no number, such as 1.2.3."""

    value: Decimal | None
    is_percent: bool
    start: int
    end: int


_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: 10 * value for value, word in enumerate(_TENS.split(), start=2)
}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_WORD = rf"(?:{'|'.join([*_SMALL, *(f'{scale}s?' for scale in _SCALES)])})"
_WORDS = re.compile(
    rf"(?<![a-z]){_WORD}(?:(?:[\s-]+|(?:(?<=hundred)|(?<=thousand)|(?<=million))\s+and\s+){_WORD})*(?![a-z])"
    r"(?!-(?:first|second|third|[a-z]+th)\b)"
)
_DIGITS = re.compile(r"(?<![a-z0-9_.])\d+(?:(?:,\d{3})+(?!\d)(?:\.\d+)?|(?:\.\d+)*)(?!st\b|nd\b|rd\b|th\b|\d)")
_HAN = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_SIGNS = "".join([*_HAN, *_HAN_UNITS])
#: What is counted; without one, numerals are parts of words: 二维码, 十分, 百度, 万一.
_COUNTED = "个|条|例|项|次|处|类|种|名|位|人|元|倍|天|秒|小时|分钟|成|多|余|%"
_HAN_NUMBER = re.compile(
    rf"百分之(?P<percent>[{_SIGNS}]+(?:点[{_SIGNS}]+)?)|(?P<whole>百分百)"
    rf"|(?<![第{_SIGNS}])(?P<tenths>[{_SIGNS}]+)成(?!功|员|为|本|果)"
    rf"|(?<![第{_SIGNS}])(?!万一)(?P<counted>[{_SIGNS}]+)(?=(?:{_COUNTED}|用例|模块|失败|通过|缺陷))"
    rf"|(?<![第双{_SIGNS}])(?P<long>[一二两三四五六七八九][十百千万亿][{_SIGNS}]*|十[一二三四五六七八九])"
)
_PERCENT = re.compile(r"\s*(?:%|per ?cent\b|percentage points?\b)")
#: Behind these, one is a number.
_ONLY = re.compile(r"(?:\bonly|\bjust|\bexactly|仅有?|只有?|共有?)\s*$")


def normal(text: str) -> str:
    """Return a text in small letters, with signs of full width as usual ones.

    >>> normal("失败１３个，占９８．５％")
    '失败13个,占98.5%'
    """
    return unicodedata.normalize("NFKC", text).lower()


def numbers_in(text: str) -> Iterator[Said]:
    """Yield the numbers of a normalised text, those in digits first.

    >>> [str(said.value) for said in numbers_in("12 of 1,234 (97.50%) in version 1.2.3, twelve hundred, 一百二十个")]
    ['12', '1234', '97.50', 'None', '1200', '120']
    >>> list(numbers_in("the first of the 2nd, one of them, p0, 第三方, 一个原因, 十分"))
    []
    """
    for found in _DIGITS.finditer(text):
        if not text[: found.start()].endswith("第"):
            digits = found.group().replace(",", "")
            value = Decimal(digits) if digits.count(".") < 2 else None
            yield _said(text, found, value)
    for found in _WORDS.finditer(text):
        yield from _unless_article(text, found, _of_words(found.group()))
    for found in _HAN_NUMBER.finditer(text):
        kind = str(found.lastgroup)
        value = Decimal(100) if kind == "whole" else _of_han(found.group(kind)) * (10 if kind == "tenths" else 1)
        if kind in ("percent", "whole", "tenths"):
            yield Said(value, True, found.start(), found.end())
        else:
            yield from _unless_article(text, found, value)


def _unless_article(text: str, found: re.Match[str], value: Decimal) -> Iterator[Said]:
    if found.group() not in ("one", "一") or _ONLY.search(text[: found.start()]):
        yield _said(text, found, value)


def _said(text: str, found: re.Match[str], value: Decimal | None) -> Said:
    percent = _PERCENT.match(text, found.end())
    return Said(value, percent is not None, found.start(), percent.end() if percent else found.end())


def _of_words(words: str) -> Decimal:
    total = part = 0
    for word in re.findall(r"[a-z]+", words):
        scale = _SCALES.get(word.removesuffix("s"), 0)
        if word in _SMALL:
            part += _SMALL[word]
        elif scale >= 1_000:
            total, part = total + max(part, 1) * scale, 0
        else:
            part = max(part, 1) * max(scale, 1)
    return Decimal(total + part)


def _of_han(signs: str) -> Decimal:
    whole, _, rest = signs.partition("点")
    tail = "".join(str(_HAN.get(sign, 0)) for sign in rest)
    if not any(sign in _HAN_UNITS for sign in whole):
        return Decimal("".join(str(_HAN[sign]) for sign in whole) + (f".{tail}" if tail else ""))
    total = section = digit = 0
    for sign in whole:
        unit = _HAN_UNITS.get(sign, 0)
        if not unit:
            digit = _HAN[sign]
        elif unit >= 10_000:
            total, section, digit = (total + section + digit or 1) * unit, 0, 0
        else:
            section, digit = section + max(digit, 1) * unit, 0
    return Decimal(f"{total + section + digit}{f'.{tail}' if tail else ''}")
