"""Functions of texts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from string import capwords
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.functions.listing import Table
from headrace.model.expressions.searching import check_comparison, check_search, check_size
from headrace.model.expressions.values import need_text, text_size, to_whole, width
from headrace.model.expressions.writing import to_text

TEXT = Table("Texts")
#: Characters that are changed, and that are encoded, at a time.
_SLICE, _PORTION = 1_024, 512
#: What takes no more memory than its result, of ASCII.
_QUICK = (str.upper, str.lower)
_UNRESERVED = "-_.!~*'()"


def by_slices(run: Run, text: str, make: Callable[[str], str]) -> str:
    """Return a text changed character by character, in slices: what a character becomes may be wider than it was."""
    if text.isascii() and make in _QUICK:
        run.charge(text_size(text))
        run.work(len(text) / 1_000)
        return make(text)
    pieces, start = [], 0
    while start < len(text):
        run.step()
        # Between words, if there is a blank: some letters depend on those around them.
        end = text.rfind(" ", start, start + _SLICE) + 1 or start + _SLICE
        piece = make(text[start:end])
        run.charge(text_size(piece))
        pieces.append(piece)
        start = end
    run.charge(80 + sum(map(len, pieces)) * width(*pieces))
    return "".join(pieces)


@TEXT.listed("toUpperCase", "The text in capital letters.", ("'abc'.toUpperCase()", "ABC"))
def upper(run: Run, text: Any) -> str:
    """Return it in capitals."""
    return by_slices(run, need_text(text), str.upper)


@TEXT.listed("toLowerCase", "The text in small letters.", ("'ABC'.toLowerCase()", "abc"))
def lower(run: Run, text: Any) -> str:
    """Return it in small letters."""
    return by_slices(run, need_text(text), str.lower)


@TEXT.listed(
    "toTitleCase", "The text with a capital at the beginning of each word.", ("'ab CD'.toTitleCase()", "Ab Cd")
)
def title(run: Run, text: Any) -> str:
    """Return it with capitals."""
    return by_slices(run, need_text(text), lambda part: capwords(part, " "))


def _stripped(run: Run, text: Any, strip: Callable[[str], str]) -> str:
    run.charge(text_size(need_text(text)))
    return strip(text)


@TEXT.listed("trim", "The text without blanks and new lines at both ends.", ("'  a b '.trim()", "a b"))
def trim(run: Run, text: Any) -> str:
    """Return it without blanks around it."""
    return _stripped(run, text, str.strip)


@TEXT.listed("trimStart", "The text without blanks and new lines at its beginning.", ("'  a '.trimStart()", "a "))
def trim_start(run: Run, text: Any) -> str:
    """Return it without blanks before it."""
    return _stripped(run, text, str.lstrip)


@TEXT.listed("trimEnd", "The text without blanks and new lines at its end.", ("'  a '.trimEnd()", "  a"))
def trim_end(run: Run, text: Any) -> str:
    """Return it without blanks behind it."""
    return _stripped(run, text, str.rstrip)


@TEXT.listed(
    "split",
    "The parts of a text between a separator: a text, never a pattern. Without one, a list of the text alone.",
    ("'a,b,c'.split(',')", ["a", "b", "c"]),
)
def split(run: Run, text: Any, separator: Any = None, most: Any = None) -> list[str]:
    """Return its parts."""
    if separator is None:
        return [need_text(text)]
    check_search(run, need_text(text), need_text(separator))
    count = text.count(separator) + 1
    run.work(count)
    run.charge(56 + 84 * count + len(text) * width(text))
    parts = text.split(separator) if separator else list(text)
    return parts if most is None else parts[: max(0, to_whole(most))]


@TEXT.listed("startsWith", "Whether a text begins with another.", ("'flow.json'.startsWith('flow')", True))
def starts_with(run: Run, text: Any, other: Any) -> bool:
    """Return whether it begins so."""
    check_comparison(run, need_text(text), need_text(other))
    return bool(text.startswith(other))


@TEXT.listed("endsWith", "Whether a text ends with another.", ("'flow.json'.endsWith('.json')", True))
def ends_with(run: Run, text: Any, other: Any) -> bool:
    """Return whether it ends so."""
    check_comparison(run, need_text(text), need_text(other))
    return bool(text.endswith(other))


def _replaced(run: Run, text: Any, old: Any, new: Any, most: int) -> str:
    whole, searched, added = need_text(text), need_text(old), need_text(new)
    check_search(run, whole, searched, added)
    count = whole.count(searched) if most < 0 else 1
    run.work(count)
    wide = width(whole, added)
    # What is searched is made as wide as what is put in.
    copied = 0 if wide == width(whole) else len(whole)
    run.charge(80 + (copied + len(whole) + count * max(0, len(added) - len(searched))) * wide)
    return whole.replace(searched, added, most)


@TEXT.listed(
    "replace",
    "The text with the first of a text, taken literally, replaced by another.",
    ("'a-b-c'.replace('-', '+')", "a+b-c"),
)
def replace_first(run: Run, text: Any, old: Any, new: Any) -> str:
    """Return it with the first one replaced."""
    return _replaced(run, text, old, new, 1)


@TEXT.listed(
    "replaceAll",
    "The text with every one of a text, taken literally, replaced by another.",
    ("'a-b-c'.replaceAll('-', '+')", "a+b+c"),
)
def replace_all(run: Run, text: Any, old: Any, new: Any) -> str:
    """Return it with all of them replaced."""
    return _replaced(run, text, old, new, -1)


@TEXT.listed(
    "substring", "The characters from one position up to, but not with, another.", ("'abcdef'.substring(1, 3)", "bc")
)
def substring(run: Run, text: Any, start: Any, end: Any = None) -> str:
    """Return a part of it."""
    whole = need_text(text)
    size = len(whole)
    first, last = sorted(min(max(to_whole(one), 0), size) for one in (start, size if end is None else end))
    run.charge(80 + (last - first) * width(whole))
    return whole[first:last]


@TEXT.listed("charAt", "The character at a position; an empty text where there is none.", ("'abc'.charAt(1)", "b"))
def char_at(run: Run, text: Any, index: Any) -> str:
    """Return one character."""
    at, whole = to_whole(index), need_text(text)
    return whole[at] if 0 <= at < len(whole) else ""


@TEXT.listed("repeat", "The text several times, one behind the other.", ("'ab'.repeat(3)", "ababab"))
def repeat(run: Run, text: Any, count: Any) -> str:
    """Return it repeated."""
    times, whole = to_whole(count), need_text(text)
    if times < 0:
        raise Fault("needs a number of times that is not negative")
    run.charge(80 + max(1, len(whole)) * times * width(whole))
    return whole * times


def _padding(run: Run, text: Any, length: Any, filler: Any) -> str:
    whole, unit = need_text(text), need_text(filler)
    missing = to_whole(length) - len(whole)
    if missing <= 0 or not unit:
        return ""
    run.charge(160 + (len(whole) + 2 * missing + len(unit)) * width(whole, unit))
    return (unit * (missing // len(unit) + 1))[:missing]


@TEXT.listed("padStart", "The text, filled up at its beginning to a length.", ("'7'.padStart(3, '0')", "007"))
def pad_start(run: Run, text: Any, length: Any, filler: Any = " ") -> str:
    """Return it filled up before."""
    padding = _padding(run, text, length, filler)
    return padding + need_text(text)


@TEXT.listed("padEnd", "The text, filled up at its end to a length.", ("'ab'.padEnd(4, '.')", "ab.."))
def pad_end(run: Run, text: Any, length: Any, filler: Any = " ") -> str:
    """Return it filled up behind."""
    padding = _padding(run, text, length, filler)
    return need_text(text) + padding


@TEXT.listed(
    "toString",
    "The value as text: objects as JSON, lists of plain values with commas, null as nothing.",
    ("(12.5).toString()", "12.5"),
    also=("String",),
)
def as_text(run: Run, value: Any) -> str:
    """Return any value as text."""
    text = to_text(run, value)
    if text is not value:
        run.charge(text_size(text))
    return text


@TEXT.listed(
    "encodeURIComponent",
    "The text as it can stand in a part of a URL.",
    ("encodeURIComponent('a b&c')", "a%20b%26c"),
    also=("urlEncode",),
)
def encode_uri(run: Run, text: Any) -> str:
    """Return it with % signs."""
    run.work(len(need_text(text)) / 2)
    return _by_portions(run, text, lambda part: quote(_encoded(part), safe=_UNRESERVED))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Fault("needs a text without halves of surrogate pairs, which are no characters") from None


def _by_portions(run: Run, text: str, make: Callable[[str], str]) -> str:
    """Return a text made of what each of its slices becomes, which is ASCII; making one takes much more memory."""
    pieces = []
    for start in range(0, len(text), _PORTION):
        piece = make(text[start : start + _PORTION])
        run.charge(2 * text_size(piece))
        pieces.append(piece)
    return "".join(pieces)


@TEXT.listed(
    "decodeURIComponent",
    "The text that stands in a part of a URL.",
    ("decodeURIComponent('a%20b')", "a b"),
    also=("urlDecode",),
)
def decode_uri(run: Run, text: Any) -> str:
    """Return it without % signs."""
    whole = need_text(text)
    check_size(whole)
    run.work(whole.count("%") * 2)
    run.charge(whole.count("%") * 140 + 8 * text_size(whole))
    try:
        return unquote_to_bytes(_encoded(whole)).decode()
    except UnicodeDecodeError:
        raise Fault("needs a text whose % signs make up UTF-8") from None


@TEXT.listed("base64Encode", "The UTF-8 bytes of a text in Base64.", ("'hi'.base64Encode()", "aGk="))
def base64_encode(run: Run, text: Any) -> str:
    """Return it in Base64."""
    run.charge(4 * len(need_text(text)) * width(text))
    return base64.b64encode(_encoded(text)).decode()


@TEXT.listed("base64Decode", "The text whose UTF-8 bytes in Base64 are given.", ("'aGk='.base64Decode()", "hi"))
def base64_decode(run: Run, text: Any) -> str:
    """Return what is in Base64."""
    run.charge(6 * text_size(need_text(text)))
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        raise Fault("needs Base64 of a text in UTF-8; other data belongs into a file") from None
