"""The elements of one JSON list, found while its text arrives.

Guarantees: valid JSON is split as a parser splits it, however it is cut into chunks; an element is given out with the
chunk that closes it; a broken element costs itself and mostly no other, and those after it are found. What a
broken text means is guessed: read each element on its own, and trust none that `is_closed` does not vouch for.
The cost is linear in the text: a chunk that cannot close an element is only kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from headrace.llm import reasoning
from headrace.llm.list_opening import OpeningFinder

#: To the next bracket, or to a quote that is not one of a well-formed string.
_RUN = re.compile(r'(?:[^"{}\[\]]*+(?<=[:,{\[\s])"[^"\\]*+(?:\\.[^"\\]*+)*+"(?=\s*[,:\]}]))*+[^"{}\[\]]*+', re.DOTALL)
_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_IN_SCALAR = re.compile(r'[^,:"{}\[\]]*+')
_BETWEEN = re.compile(r"[\s,:}]*+")
_SPACE = re.compile(r"\s*+")
_SPACE_AND_COMMAS = re.compile(r"[\s,]*+")
_MARKS = re.compile(r"[\s,}\]]*+")
_SPACE_AND_BRACES = re.compile(r"[\s}]*+")
#: What stands before a quote that opens a string, and after one that closes it.
_BEFORE_OPENING = frozenset(":,{[ \t\r\n")
_AFTER_CLOSING = frozenset(",:]}")
_NEXT_ELEMENT = re.compile(r"\}\s*,\s*\{\s*$")
_NEXT_KEY = re.compile(r"(?<![:\s,])\s*,\s*$")
#: So far back it is looked for what stands before a place.
_LOOK_BACK = 80


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the list, as it was written."""

    index: int
    text: str
    #: Whether it surely ended; False where the text was cut in it, or its end had to be guessed.
    is_closed: bool


class _Mode(Enum):
    BEGINNING = auto()
    REASONING = auto()
    SEEKING = auto()
    BETWEEN = auto()
    INSIDE = auto()
    STRING = auto()
    SCALAR = auto()
    ENDED = auto()


#: No list was found yet.
_BEFORE = frozenset({_Mode.BEGINNING, _Mode.REASONING, _Mode.SEEKING})
#: No element is open.
_OUTSIDE = _BEFORE | {_Mode.BETWEEN, _Mode.ENDED}


class ElementScanner:
    """Push text in, get the elements of its list out.

    >>> scanner = ElementScanner()
    >>> [element.text for chunk in ('Here: {"items": [{"a"', ': 1}, {"a', '": 2}]}') for element in scanner.feed(chunk)]
    ['{"a": 1}', '{"a": 2}']
    >>> scanner.finish(), scanner.is_list_closed
    ([], True)
    """

    def __init__(self, key: str = "items") -> None:
        """`key`: the field that holds the list, where it does not stand alone."""
        self._finder = OpeningFinder(key)
        self._mode = _Mode.BEGINNING
        self._waiting: list[str] = []
        self._kept: list[str] = []  # of the element, what is read and no longer in the tail
        self._tail = ""
        self._at = self._from = 0
        self._stack: list[str] = []  # brackets that are open in the element
        self._depth = 0  # objects that hold the list
        self._is_guess = False
        self._count = 0
        self._out: list[Element] = []

    @property
    def is_found(self) -> bool:
        """Whether a list was found."""
        return self._mode not in _BEFORE

    @property
    def is_list_closed(self) -> bool:
        """Whether the list was seen to end."""
        return self._mode is _Mode.ENDED

    def feed(self, text: str) -> Sequence[Element]:
        """The elements that this text closes."""
        self._waiting.append(text)
        if self._stack:  # an object or a list is open: nothing else can end it
            if "}" not in text and "]" not in text:
                return ()
        elif self._mode in _BEFORE and "[" not in text and "{" not in text:
            return ()
        elif self._mode is _Mode.ENDED:
            self._waiting.clear()
            return ()
        self._read_waiting()
        self._scan(is_end=False)
        self._drop_read()
        return self._taken()

    def finish(self) -> Sequence[Element]:
        """What is left at the end of the text; the last element is not closed if it was cut."""
        self._read_waiting()
        self._scan(is_end=True)
        if self._mode not in _OUTSIDE:
            self._emit(self._text_to(len(self._tail)), is_closed=False)
            self._mode = _Mode.BETWEEN
        return self._taken()

    def _read_waiting(self) -> None:
        self._tail += "".join(self._waiting)
        self._waiting.clear()

    def _scan(self, *, is_end: bool) -> None:
        while self._STEPS[self._mode](self, is_end):
            pass

    def _drop_read(self) -> None:
        """Forget what is read; one character is kept, for looking at what stands before a quote."""
        if self._mode in _BEFORE or self._at < 1:
            return
        if self._mode is not _Mode.BETWEEN:
            self._kept.append(self._tail[self._from : self._at])
        self._tail = self._tail[self._at - 1 :]
        self._at = self._from = 1

    def _taken(self) -> Sequence[Element]:
        out, self._out = self._out, []
        return out

    def _start(self, is_end: bool) -> bool:
        begin = reasoning.BEGIN.match(self._tail)
        if begin is None and not is_end and reasoning.may_begin(self._tail):
            return False
        self._tail = self._tail[begin.end() :] if begin else self._tail
        self._mode = _Mode.REASONING if begin else _Mode.SEEKING
        return True

    def _reason(self, is_end: bool) -> bool:
        end = reasoning.END.search(self._tail)
        self._tail = self._tail[end.end() if end else 1 - reasoning.LONGEST_TAG :]
        self._mode = _Mode.BEGINNING if end else _Mode.REASONING
        return end is not None

    def _seek(self, is_end: bool) -> bool:
        opening = self._finder.find(self._tail, is_end=is_end)
        if opening is None:
            return False
        self._at, self._depth, self._mode = opening.place + 1, opening.depth, _Mode.BETWEEN
        self._tail = self._tail[: opening.end]
        return True

    def _between(self, is_end: bool) -> bool:
        match = _BETWEEN.match(self._tail, self._at)
        self._at = match.end() if match else self._at
        if self._at == len(self._tail):
            return False
        mark = self._tail[self._at]
        if mark == "]":
            return self._end_list(self._ends_list(is_end))
        self._kept.clear()
        self._from, self._is_guess = self._at, False
        self._stack = [mark] if mark in "{[" else []
        self._mode = _Mode.INSIDE if self._stack else _Mode.STRING if mark == '"' else _Mode.SCALAR
        self._at += 1
        return True

    def _inside(self, is_end: bool) -> bool:
        match = _RUN.match(self._tail, self._at)
        self._at = match.end() if match else self._at
        if self._at == len(self._tail):
            return False
        mark = self._tail[self._at]
        if mark == '"':
            if self._tail[self._at - 1] in _BEFORE_OPENING:
                self._mode = _Mode.STRING
            self._at += 1
            return True
        if mark in "{[":
            return self._open(mark)
        return self._close_brace(is_end) if mark == "}" else self._close_bracket(is_end)

    def _open(self, mark: str) -> bool:
        if mark == "{" and self._stack[-1] == "{" and _NEXT_KEY.search(self._recent()):
            # An object where a key must stand: the one before it was never closed.
            while self._stack and self._stack[-1] == "{":
                self._stack.pop()
            if not self._stack:
                text = self._text_to(self._at)
                self._emit(text[: text.rindex(",")], is_closed=False)
                self._begin(kept=[], at=self._at)
        self._stack.append(mark)
        self._at += 1
        return True

    def _close_brace(self, is_end: bool) -> bool:
        if self._stack[-1] == "[":  # either the list within was never closed, or the brace is one too many
            following = self._following(self._at + 1, _SPACE_AND_COMMAS)
            if following == "" and not is_end:
                return False
            if "{" not in self._stack or following not in ("", "{"):
                self._at += 1
                return True
        self._at += 1
        while self._stack.pop() != "{":
            pass
        if not self._stack:
            self._emit(self._text_to(self._at), is_closed=not self._is_guess)
            self._mode = _Mode.BETWEEN
        return True

    def _close_bracket(self, is_end: bool) -> bool:
        if "[" in self._stack:
            while self._stack.pop() != "[":
                pass
            self._at += 1
            if not self._stack:
                self._emit(self._text_to(self._at), is_closed=not self._is_guess)
                self._mode = _Mode.BETWEEN
            return True
        ends = self._ends_list(is_end, is_inside=True)
        if ends:
            self._emit(self._text_to(self._at), is_closed=False)
        return self._end_list(ends)

    def _end_list(self, ends: bool | None) -> bool:
        if ends is None:
            return False
        if ends:
            self._mode = _Mode.ENDED
        else:
            self._at += 1  # one bracket too many
        return not ends

    def _ends_list(self, is_end: bool, *, is_inside: bool = False) -> bool | None:
        """Whether the bracket here can be the list's own, by what follows; None where nothing does yet."""
        match = _SPACE_AND_BRACES.match(self._tail, self._at + 1)
        passed = match.group() if match else ""
        braces = passed.count("}")
        following = self._following(self._at + 1, _SPACE_AND_BRACES)
        if is_inside and braces > self._depth:
            return False
        if following == "":
            return True if is_end else None
        if following != ",":
            return following == "`" or ("\n" in passed and following.isalpha())  # words: the JSON is over
        if is_inside or braces >= self._depth:
            return False
        key = self._following(self._at + 1, _MARKS)
        return None if key == "" and not is_end else key in ("", '"')

    def _string(self, is_end: bool) -> bool:
        match = _IN_STRING.match(self._tail, self._at)
        self._at = match.end() if match else self._at
        if self._at == len(self._tail) or self._tail[self._at] == "\\":
            return False
        following = self._following(self._at + 1)
        if following == "" and not is_end:
            return False
        if following == "" or following in _AFTER_CLOSING:
            self._mode = _Mode.INSIDE if self._stack else _Mode.SCALAR
        elif len(self._stack) == 1 and _NEXT_ELEMENT.search(self._recent()):
            self._split()
        self._at += 1
        return True

    def _split(self) -> None:
        """A string that was never closed ran into the next element; its first key begins here."""
        text = self._text_to(self._at)
        brace = text.rindex("{")
        self._emit(text[: text.rindex("}", 0, brace) + 1], is_closed=False)
        self._begin(kept=[text[brace:]], at=self._at)
        self._stack = ["{"]

    def _scalar(self, is_end: bool) -> bool:
        match = _IN_SCALAR.match(self._tail, self._at)
        self._at = match.end() if match else self._at
        if self._at == len(self._tail):
            return False
        mark = self._tail[self._at]
        if mark == ":":  # an object whose first brace is missing
            self._stack, self._is_guess, self._mode = ["{"], True, _Mode.INSIDE
        elif mark == '"':
            self._mode = _Mode.STRING
        else:
            end = self._at + (mark == "}")
            self._emit(self._text_to(end).rstrip(), is_closed=mark in ",]")
            self._at, self._mode = end, _Mode.BETWEEN
            return True
        self._at += 1
        return True

    def _begin(self, *, kept: list[str], at: int) -> None:
        self._kept, self._from, self._is_guess = kept, at, False

    def _emit(self, text: str, *, is_closed: bool) -> None:
        self._out.append(Element(self._count, text, is_closed))
        self._count += 1
        self._stack = []
        self._kept.clear()

    def _text_to(self, end: int) -> str:
        return "".join((*self._kept, self._tail[self._from : end]))

    def _recent(self) -> str:
        """The end of what the element holds so far."""
        recent = self._tail[max(self._from, self._at - _LOOK_BACK) : self._at]
        for part in reversed(self._kept):
            if len(recent) >= _LOOK_BACK:
                break
            recent = part[-_LOOK_BACK:] + recent
        return recent[-_LOOK_BACK:]

    def _following(self, place: int, passed: re.Pattern[str] = _SPACE) -> str:
        """The next character behind what is passed over; empty at the end of what is there."""
        match = passed.match(self._tail, place)
        end = match.end() if match else place
        return self._tail[end : end + 1]

    _STEPS: ClassVar[Mapping[_Mode, Callable[[ElementScanner, bool], bool]]] = {
        _Mode.BEGINNING: _start,
        _Mode.REASONING: _reason,
        _Mode.SEEKING: _seek,
        _Mode.BETWEEN: _between,
        _Mode.INSIDE: _inside,
        _Mode.STRING: _string,
        _Mode.SCALAR: _scalar,
        _Mode.ENDED: lambda _scanner, _is_end: False,
    }
