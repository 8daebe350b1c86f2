"""Bodies of requests to webhooks: JSON, forms and texts, by what their type says."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from headrace.service.bodies import parse_json
from headrace.service.guard import is_json
from headrace.service.problems import RequestError

FORM = "application/x-www-form-urlencoded"
#: Types that are text though they do not say so.
_TEXTS = ("application/xml",)
_CHARSETS = ("utf-8", "ascii", "iso8859-1")
#: Fields of a form, or parameters of a query.
MOST_FIELDS = 1_000


def body_of(content_type: str, data: bytes) -> Any:
    """Return the body of a request as JSON data; an empty object where there is none. Raises RequestError: 400, 415.

    >>> body_of("application/x-www-form-urlencoded", b"a=1&b=2&b=3")
    {'a': '1', 'b': ['2', '3']}
    """
    kind = content_type.partition(";")[0].strip().lower()
    if not data:
        return {}
    if is_json(content_type):
        return parse_json(data)
    if kind == FORM:
        return fields_of(_text(data, content_type))
    if kind.startswith("text/") or kind in _TEXTS or kind.endswith("+xml"):
        return _text(data, content_type)
    shown = repr(kind[:80]) if kind else "none"
    fix = f"send JSON, text, or a form as {FORM}; files and other binary bodies are not taken"
    raise RequestError(415, "unsupported_media_type", f"{fix}, got the type {shown}")


def fields_of(text: str) -> dict[str, Any]:
    """Return the fields of a form or a query; one that is there several times has a list. Raises RequestError 400."""
    try:
        return gathered(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except ValueError:
        rule = f"must be at most {MOST_FIELDS} fields of UTF-8, percent-encoded"
        raise RequestError(400, "invalid_request", f"a form and a query {rule}") from None


def gathered(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return pairs as a mapping; names that are there several times have lists.

    >>> gathered([("a", "1"), ("b", "2"), ("a", "3")])
    {'a': ['1', '3'], 'b': '2'}
    """
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _text(data: bytes, content_type: str) -> str:
    charset = _charset(content_type)
    try:
        return data.decode(charset)
    except UnicodeDecodeError:
        raise RequestError(400, "invalid_request", f"the body is not {charset}, as its type says") from None


def _charset(content_type: str) -> str:
    options = (part.strip().partition("=") for part in content_type.split(";")[1:])
    written = next((value.strip(' "') for name, _, value in options if name.strip().lower() == "charset"), "utf-8")
    try:
        found = codecs.lookup(written).name
    except (LookupError, ValueError):
        found = ""
    if found not in _CHARSETS:
        raise RequestError(415, "unsupported_media_type", f"the charset must be utf-8, got {written[:40]!r}")
    return found
