"""Values as text: as they stand in a sentence, and as JSON, made piece by piece so that no piece is too large."""

from __future__ import annotations

import io
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

from headrace.model.expressions.budget import MAX_DEPTH, MAX_SIZE, Run
from headrace.model.expressions.errors import Fault, LimitFault
from headrace.model.expressions.moments import Moment
from headrace.model.expressions.values import kind, number_text, text_size, width

#: Characters of a text that are written at a time.
_SLICE = 8_192
_WORDS = {None: "null", True: "true", False: "false"}
Sink = Callable[[str], object]


def to_text(run: Run, value: Any) -> str:
    """Return a value as it stands in a text: null as nothing, objects as JSON, lists of plain values with commas.

    Raises Fault for what has no text, LimitFault.
    """
    if type(value) is str:
        return value
    if value is None:
        return ""
    if type(value) is list and not any(type(one) is list or type(one) is dict for one in run.each(value)):
        return joined(run, value, ",")
    return value.iso if type(value) is Moment else json_text(run, value)


def joined(run: Run, values: list[Any], between: str) -> str:
    """Return the texts of values with another between them."""
    texts: list[str] = []
    size, wide = 80, width(between)
    run.charge(8 * len(values))
    for value in run.each(values):
        if type(value) is not str:
            value = to_text(run, value)
            run.charge(text_size(value))
        wide = max(wide, width(value))
        size += len(value) + len(between)
        texts.append(value)
    run.charge(wide * size)
    return between.join(texts)


def json_text(run: Run, value: Any, indent: int = 0, *, ordered: bool = False) -> str:
    """Return a value as JSON, with members in the order of their names if wanted. Raises Fault, LimitFault."""
    mark = run.used
    out = io.StringIO()

    def write(piece: str) -> None:
        # The buffer grows by a quarter more than it holds, and is copied at the end.
        run.charge(2.25 * len(piece) * width(piece))
        out.write(piece)

    Writer(run, write, " " * indent, ordered=ordered).value(value)
    made = out.getvalue()
    run.keep(mark, made)
    return made


def check_json_size(run: Run, value: Any) -> None:
    """Raise LimitFault if the JSON of a value has too many bytes, without making it."""
    left = MAX_SIZE

    def write(piece: str) -> None:
        nonlocal left
        left -= len(piece) if piece.isascii() else len(piece.encode("utf-8", "surrogatepass"))
        if left < 0:
            raise LimitFault(f"the result has more than {MAX_SIZE // 1_000_000} MB: work on smaller values")

    Writer(run, write, "").value(value)


class Writer:
    """Writes JSON into a sink, in as few pieces as it can."""

    def __init__(self, run: Run, sink: Sink, indent: str, *, ordered: bool = False) -> None:
        self._run, self._sink, self._indent, self._ordered = run, sink, indent, ordered
        self._colon = ": " if indent else ":"

    def value(self, value: Any, before: str = "", depth: int = 0) -> None:
        """Write a value, and all that is in it, behind signs that belong before it."""
        if depth > MAX_DEPTH:
            raise LimitFault(f"the value is nested more than {MAX_DEPTH} levels deep")
        if type(value) is str:
            self._text(value, before)
        elif type(value) is list:
            self._list(value, before, depth)
        elif type(value) is dict:
            self._object(value, before, depth)
        else:
            self._sink(before + _word(value))

    def _list(self, values: list[Any], before: str, depth: int) -> None:
        before, between = before + "[" + self._line(depth + 1), "," + self._line(depth + 1)
        for value in self._run.each(values):
            self.value(value, before, depth + 1)
            before = between
        self._sink(self._line(depth) + "]" if values else before.rstrip() + "]")

    def _object(self, values: dict[str, Any], before: str, depth: int) -> None:
        before, between = before + "{" + self._line(depth + 1), "," + self._line(depth + 1)
        for name, value in self._run.each(self._sorted(values) if self._ordered else values.items()):
            if len(name) <= _SLICE:
                self.value(value, before + encode_basestring(name) + self._colon, depth + 1)
            else:
                self._text(name, before)
                self.value(value, self._colon, depth + 1)
            before = between
        self._sink(self._line(depth) + "}" if values else before.rstrip() + "}")

    def _sorted(self, values: dict[str, Any]) -> list[tuple[str, Any]]:
        self._run.charge(72 * len(values))
        self._run.work(4 * len(values))
        return [(name, values[name]) for name in sorted(values)]

    def _line(self, depth: int) -> str:
        return "\n" + self._indent * depth if self._indent else ""

    def _text(self, text: str, before: str) -> None:
        if len(text) <= _SLICE:
            self._sink(before + encode_basestring(text))
            return
        self._sink(before + '"')
        for start in range(0, len(text), _SLICE):
            self._run.step()
            self._sink(encode_basestring(text[start : start + _SLICE])[1:-1])
        self._sink('"')


def _word(value: Any) -> str:
    if value is None or type(value) is bool:
        return _WORDS[value]
    if type(value) is int or type(value) is float:
        return number_text(value)
    if type(value) is Moment:
        return f'"{value.iso}"'
    raise Fault(f"{kind(value)} is no data that can be written")
