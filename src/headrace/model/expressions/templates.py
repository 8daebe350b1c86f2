"""Texts that begin with "=": plain text, and expressions between {{ and }}."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from headrace.model.expressions.budget import MAX_SOURCE, MAX_SOURCES
from headrace.model.expressions.errors import LimitFault, SyntaxFault
from headrace.model.expressions.parsing import Parser
from headrace.model.expressions.syntax import Chain, Index, Literal, Member, Method, OtherNode, Part, Root

#: Texts up to this length are kept parsed in greater number.
_SHORT = 1_024


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A text that was taken apart."""

    pieces: tuple[Part, ...]
    #: Whether it is one expression and nothing around it, so that its value keeps its type.
    single: bool
    #: Whether its value is a part of what the scope has, as it is there.
    path: bool


def template_of(text: str) -> Template:
    """Return a text that begins with "=", taken apart. Raises SyntaxFault, LimitFault.

    >>> [len(template_of("={{ $json.a }}").pieces), len(template_of("=Dear {{ $json.name }},").pieces)]
    [1, 3]
    """
    return _kept_short(text) if len(text) <= _SHORT else _kept_long(text)


@lru_cache(maxsize=1_024)
def _kept_short(text: str) -> Template:
    return _taken_apart(text)


@lru_cache(maxsize=64)
def _kept_long(text: str) -> Template:
    return _taken_apart(text)


def _taken_apart(text: str) -> Template:
    pieces: list[Part] = []
    at, used, found = 1, 0, 0
    while (start := _opening(text, at)) >= 0:
        _add_literal(pieces, text, at, start)
        part, end = _expression(text, start)
        pieces.append(part)
        used += end - start
        found += 1
        if used > MAX_SOURCES:
            rule = f"the expressions of one text have more than {MAX_SOURCES} characters: split it over several nodes"
            raise LimitFault(rule, start)
        at = end
    _add_literal(pieces, text, at, len(text))
    single = found == 1 and len(pieces) == 1
    return Template(tuple(pieces), single, single and is_path(pieces[0]))


def _opening(text: str, at: int) -> int:
    r"""Return where the next {{ is that has no \ before it; -1: there is none."""
    start = text.find("{{", at)
    while start > 0 and text[start - 1] == "\\":
        start = text.find("{{", start + 2)
    return start


def _add_literal(pieces: list[Part], text: str, start: int, end: int) -> None:
    if start < end:
        pieces.append(Literal(start, end, 1, text[start:end].replace("\\{{", "{{")))


def _expression(text: str, start: int) -> tuple[Part, int]:
    """Return the expression behind the {{ at an offset, and where the text goes on."""
    parser = Parser(text, start + 2)
    if parser.at("}"):
        raise SyntaxFault("there has to be an expression between {{ and }}", start)
    part = parser.expression()
    token = parser.token
    if token.kind == "end":
        raise SyntaxFault("{{ has no }}: write }} behind the expression", start)
    if not parser.at("}"):
        raise SyntaxFault(f"`{token.text[:40]}` cannot stand here: an operator or }}}} has to follow", token.start)
    if text[token.end : token.end + 1] != "}":
        raise SyntaxFault("the expression ends with }} and not with one }", token.start)
    if token.start - start > MAX_SOURCE:
        raise LimitFault(f"the expression is longer than {MAX_SOURCE} characters: split it over several nodes", start)
    return part, token.end + 1


def is_path(part: Part) -> bool:
    """Whether a value is a part of what the scope has, as it is there: `$json.a[0]`, `$input.first().json`."""
    if isinstance(part, Root | OtherNode):
        return True
    if isinstance(part, Index):
        return isinstance(part.key, Literal) and is_path(part.inner)
    if isinstance(part, Method):
        return part.function is None and is_path(part.inner)
    return isinstance(part, Member | Chain) and is_path(part.inner)
