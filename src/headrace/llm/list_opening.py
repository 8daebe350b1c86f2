"""Where the list of an answer begins: behind words, code fences and the object that holds it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from headrace.llm import reasoning

#: Where JSON begins: where the answer does, or behind a fence; and what looks like JSON within words.
_START = re.compile(r'(?:\A[\s\ufeff]*|```\w{0,20}\s*|</think(?:ing)?>\s*)([\[{])|(\[)\s*\{|(\{)\s*"', re.IGNORECASE)
#: More than what may stand before that bracket, without space.
_LOOK_BACK = 40
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_VALUE_OF_KEY = re.compile(r"\s*:\s*\Z")
_JSON_OBJECTS = re.compile(r'\[\s*\{\s*["}]')


@dataclass(frozen=True, slots=True)
class Opening:
    """Where the list begins."""

    #: of its bracket
    place: int
    #: how many objects hold it
    depth: int
    #: where the text behind the list begins; None: not known
    end: int | None = None


class OpeningFinder:
    """Finds the bracket that opens the list: the value of `key`, or one that stands where the answer begins.

    A list within words may be an example, or a draft: it will do at the end of the text, if nothing better came; then
    also the only list of an object, whatever its key.

    >>> OpeningFinder("items").find('Sure: {"notes": [], "items": [', is_end=False)
    Opening(place=29, depth=1, end=None)
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._begin = 0  # what stands before it is read
        self._bare: list[Opening] = []
        self._keyed: list[Opening] = []

    def find(self, text: str, *, is_end: bool) -> Opening | None:
        """The opening in this text, which goes on where it ended the last time; None: not there, or not yet."""
        while (match := _START.search(text, self._begin)) is not None:
            place = next(match.start(group) for group in (1, 2, 3) if match.group(group))
            is_list = text[place] == "["
            if is_list and match.group(1):
                return Opening(place, 0)
            opening, end, others = _look_within(text, place, self._key)
            if opening is not None:
                return opening
            if end is None and not is_end:
                self._begin = match.start()
                return None
            if is_list:
                self._bare.append(Opening(place, 0, end))
            else:
                self._keyed += others
            self._begin = end or (place + 1 if is_list else len(text))
        if is_end:
            return self._next_best(text)
        self._begin = max(self._begin, len(text.rstrip()) - _LOOK_BACK)
        return None

    def _next_best(self, text: str) -> Opening | None:
        *_, drafts_end = (0, *(match.end() for match in reasoning.END.finditer(text)))
        bare = [opening for opening in self._bare if opening.place >= drafts_end]
        keyed = [opening for opening in self._keyed if opening.place >= drafts_end]
        if bare:
            told = [opening for opening in bare if _JSON_OBJECTS.match(text, opening.place)]
            last = (told or bare)[-1]
            return last if _is_json(text[last.place : last.end]) else replace(last, end=None)
        return keyed[0] if len(keyed) == 1 else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _look_within(text: str, begin: int, key: str) -> tuple[Opening | None, int | None, list[Opening]]:
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
    return None, None, others
