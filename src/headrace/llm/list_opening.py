"""Where the list of an answer begins: behind words, code fences and the object that holds it."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Where JSON may begin: at the start of the text, behind a fence, or where it looks like JSON.
_START = re.compile(r'(?:\A|```\w*)\s*([\[{])|(\[)\s*\{|(\{)\s*"')
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_VALUE_OF_KEY = re.compile(r"\s*:\s*\Z")


@dataclass(frozen=True, slots=True)
class Opening:
    """Where the list begins."""

    #: of its bracket
    place: int
    #: how many objects hold it
    depth: int


def find_opening(text: str, key: str, *, is_end: bool) -> Opening | None:
    """The bracket that opens the list: one that stands alone, or the value of `key`.

    At the end of the text the only list of an object will do, whatever its key. None: not there, or not yet.

    >>> find_opening('Sure: {"notes": [], "items": [', "items", is_end=False)
    Opening(place=29, depth=1)
    """
    begin = 0
    only: list[Opening] = []
    while (match := _START.search(text, begin)) is not None:
        place = next(match.start(group) for group in (1, 2, 3) if match.group(group))
        if text[place] == "[":
            return Opening(place, 0)
        opening, begin, others = _in_object(text, place, key)
        if opening is not None:
            return opening
        only += others
    return only[0] if is_end and len(only) == 1 else None


def _in_object(text: str, begin: int, key: str) -> tuple[Opening | None, int, list[Opening]]:
    """The list under `key` in the object that begins here; where the object ends; the lists under other keys."""
    stack: list[str] = []
    others: list[Opening] = []
    last_key, after = "", begin
    for match in _TOKEN.finditer(text, begin):
        mark = match.group()
        if mark[0] == '"':
            last_key, after = match.group(1), match.end()
            continue
        if mark == "[" and "[" not in stack:
            has_key = _VALUE_OF_KEY.match(text[after : match.start()]) is not None
            opening = Opening(match.start(), len(stack))
            if has_key and last_key == key:
                return opening, match.end(), others
            others.append(opening)
        if mark in "{[":
            stack.append(mark)
        elif stack:
            stack.pop()
        if not stack:
            return None, match.end(), others
    return None, len(text), others
