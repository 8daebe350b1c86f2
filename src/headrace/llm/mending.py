"""JSON with small mistakes read by code: whole text only, and nothing lost of it or added to it.

`json-repair` closes what was open, fills what is missing and skips what it cannot place. All that would be invention of
ours. So a text that ends early is not given to it; and of what it returns every string must stand in the text in
quotes, and every key, letter and digit of the text must be in what it returns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from headrace.llm.validation import InvalidAnswerError

_QUOTES = "\"'“”‘’`"
_CLOSED_BY = {"{": "}", "[": "]"}
_KEY = re.compile(rf"[{_QUOTES}]([^{_QUOTES}\\]+)[{_QUOTES}]\s*:")
#: An empty text where a value may begin, and not within another text.
_EMPTY = re.compile(r"(?:(?<=[:,\[])|(?<=[:,\[]\s)|\A)(?:\"\"|''|“”|‘’)(?=\s*[,}\]])")
#: The first and last letters of a string, as far as they cannot have been written otherwise than they are.
_FIRST = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .,;-]{0,15}")
_LAST = re.compile(r"[A-Za-z0-9 .,;-]{0,15}[A-Za-z0-9'’]\Z")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_LITERALS = {True: "true", False: "false"}


def mend(text: str) -> Any:
    """The JSON object or list that this text means. Raises InvalidAnswerError where that cannot be told.

    >>> mend('{"name": "Oak", "ages": [1, 2,],}')
    {'name': 'Oak', 'ages': [1, 2]}
    """
    stripped = text.strip()
    if len(stripped) < 2 or _CLOSED_BY.get(stripped[0]) != stripped[-1]:
        raise InvalidAnswerError(["Invalid JSON: it ends early"])
    from json_repair import repair_json  # takes 60 ms, and is seldom needed

    try:
        value: Any = repair_json(stripped, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        raise InvalidAnswerError(["Invalid JSON"]) from None
    if not isinstance(value, dict if stripped[0] == "{" else list):
        raise InvalidAnswerError(["Invalid JSON"])
    if _invented(value, stripped) or _lost(value, stripped):
        raise InvalidAnswerError(
            ["Invalid JSON: a value is missing or not in quotes, or a quote within it not escaped"]
        )
    return value


def mended_json(text: str) -> str:
    """The same as JSON text, so that a model reads it by the rules for JSON."""
    return json.dumps(mend(text), ensure_ascii=False)


def _invented(value: Any, text: str) -> bool:
    strings = [part for part in _leaves(value) if isinstance(part, str)]
    return strings.count("") > len(_EMPTY.findall(text)) or not all(_is_quoted(part, text) for part in set(strings))


def _is_quoted(string: str, text: str) -> bool:
    """Whether it stands between quotes, as far as its first and last letters tell."""
    first, last = _FIRST.match(string), _LAST.search(string)
    return (first is None or re.search(rf"[{_QUOTES}]\s*{re.escape(first.group())}", text) is not None) and (
        last is None or re.search(rf"{re.escape(last.group())}\s*[{_QUOTES}]", text) is not None
    )


def _lost(value: Any, text: str) -> bool:
    """Whether something of the text is in no key and no value."""
    keys = list(_keys(value))
    written = Counter(match.group(1).strip() for match in _KEY.finditer(text))
    if written - Counter(keys):
        return True  # a string that was never closed has run over it
    said = _ESCAPE.sub("", text)
    held = " ".join([*keys, *map(_said, _leaves(value))])
    return bool(_characters(said) - _characters(held))


def _characters(text: str) -> Counter[str]:
    return Counter(mark for mark in text.lower() if mark.isascii() and mark.isalnum())


def _said(leaf: Any) -> str:
    """As it may have been written; a literal in the way of JSON or of Python."""
    if leaf is None:
        return "null none"
    return _LITERALS[leaf] if isinstance(leaf, bool) else str(leaf)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    else:
        yield value


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _keys(part)
