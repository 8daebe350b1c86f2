"""Words and signs of an expression, one at a time: only the parser knows where a template literal goes on."""

from __future__ import annotations

import re
from typing import NamedTuple

from headrace.model.expressions.budget import MAX_SOURCE
from headrace.model.expressions.errors import LimitFault, SyntaxFault


class Token(NamedTuple):
    """A piece of source. Of a text in quotes, and of a part of a template literal, `text` is what it stands for."""

    kind: str
    text: str
    start: int
    end: int


_SIGNS = (
    *("===", "!==", "...", ">>>", "**=", "&&=", "||=", "??=", "<<=", ">>="),
    *("=>", "==", "!=", "<=", ">=", "&&", "||", "??", "**", "++", "--", "+=", "-=", "*=", "/=", "%=", "<<", ">>"),
    *("//", "/*", "&", "|", "^", "~", "=", ";", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ",", "."),
    *("(", ")", "[", "]", "{", "}", "`", "#", "@"),
)
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>(?:\$|[^\W\d])[\w$]*)"
    r"""|(?P<quoted>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
    r"|(?P<sign>\?\.(?![0-9])|" + "|".join(map(re.escape, _SIGNS)) + ")",
    re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_LITERAL = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Tokens:
    """Reads a text from an offset on."""

    def __init__(self, text: str, start: int) -> None:
        self._text, self._at = text, start
        self._limit = start + MAX_SOURCE

    def next(self) -> Token:
        """Return the next token; at the end one of the kind "end"."""
        start = self._after_space()
        if start >= len(self._text):
            return Token("end", "", len(self._text), len(self._text))
        found = _TOKEN.match(self._text, start, self._limit)
        if found is None:
            self._check_length(start)
            raise SyntaxFault(_unknown(self._text[start]), start)
        self._at = found.end()
        kind, text = str(found.lastgroup), found.group()
        if kind == "quoted":
            text = unescaped(text[1:-1], start + 1)
        return Token(kind, text, start, self._at)

    def piece(self, start: int) -> Token:
        """Return the text of a template literal from an offset on, up to `${` or the last backquote."""
        found = _LITERAL.match(self._text, start, self._limit)
        end = found.end() if found else start
        if end >= min(len(self._text), self._limit) or self._text[end] == "\\":
            self._check_length(start - 1)
            raise SyntaxFault("the text that begins with ` has no end: write ` after it", start)
        self._at = end + (2 if self._text[end] == "$" else 1)
        kind = "more" if self._text[end] == "$" else "last"
        return Token(kind, unescaped(self._text[start:end], start), start, self._at)

    def _after_space(self) -> int:
        found = _SPACE.match(self._text, self._at, self._limit)
        return found.end() if found else self._at

    def _check_length(self, start: int) -> None:
        """Fail if what has no end here might have one beyond the limit."""
        if start >= self._limit or (len(self._text) > self._limit and self._text[start] in "'\"`}"):
            rule = f"the expression is longer than {MAX_SOURCE} characters, or a text in it has no end"
            raise LimitFault(rule, start)


def unescaped(text: str, offset: int) -> str:
    r"""Return what the inside of a text in quotes stands for.

    >>> unescaped(r"a\n\u0041", 0) == "a\nA"
    True
    """
    if "\\" not in text:
        return text
    made = _ESCAPE.sub(lambda found: _escape(found, offset), text)
    made = _PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), made)
    if any("\ud800" <= character <= "\udfff" for character in made):
        raise SyntaxFault("the text has one half of a surrogate pair: write both \\u escapes, or the character", offset)
    return made


def _escape(found: re.Match[str], offset: int) -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        if found[4] in "ux":
            at = offset + found.start()
            raise SyntaxFault(f"\\{found[4]} needs hexadecimal digits: \\u0041, \\u{{1F600}} or \\x41", at)
        return _PLAIN_ESCAPES.get(found[4], found[4])
    if int(code, 16) > 0x10FFFF:
        raise SyntaxFault("there is no such character: \\u{…} goes up to 10FFFF", offset + found.start())
    return chr(int(code, 16))


def _unknown(character: str) -> str:
    if character in "'\"":
        return f"the text that begins with {character} has no end: write {character} after it, and \\n for a new line"
    return f"{character!r} does not belong to any word or sign of expressions"
