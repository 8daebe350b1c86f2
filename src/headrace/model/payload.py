"""JSON in and out of the store: what is accepted, and how large it may be."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from json.encoder import encode_basestring
from typing import Any

from headrace.model.errors import InvalidInputError, PayloadTooLargeError
from headrace.model.strict_json import json_fault

#: Arguments and results above this many bytes of UTF-8 are refused: pass a reference instead.
MAX_PAYLOAD_BYTES = 256 * 1024
#: Nesting above this is refused; no parser downstream is asked to recurse further.
MAX_DEPTH = 64

_TEXT = frozenset({str})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_LARGE_INT, _SHORT_TEXT = 1 << 63, 8_192

_NUL_ESCAPE = "\\u0000"
#: The escape itself, not a backslash that is followed by the letters: an odd number of backslashes.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@cache
def _encoder(default: Callable[[Any], Any] | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)


def encode_json(
    value: Any, *, field: str, default: Callable[[Any], Any] | None = None, most: int = MAX_PAYLOAD_BYTES
) -> str:
    """Return `value` as compact JSON text that every store accepts.

    Raises InvalidInputError for NaN and infinities, NUL characters, lone surrogates, nesting above 64, two keys of one
    mapping that are the same in JSON, or a type JSON does not have; PayloadTooLargeError above `most` bytes, 256 KiB.

    >>> encode_json({"a": [1, "é"]}, field="arguments")
    '{"a":[1,"é"]}'
    """
    try:
        text = _encoder(default).encode(value)
    except RecursionError:
        raise InvalidInputError(field, f"must not be nested deeper than {MAX_DEPTH}", type(value).__name__) from None
    except (TypeError, ValueError) as error:
        why = json_fault(error) if isinstance(error, ValueError) else error
        raise InvalidInputError(field, f"must be JSON ({why})", _wrong_type(value, default)) from None
    if len(text) > MAX_PAYLOAD_BYTES // 4 or not text.isascii():
        _check_bytes(text, field, most)
    if _NUL_ESCAPE in text and _NUL.search(text):
        raise InvalidInputError(field, "must not contain NUL characters", "\\u0000")
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(json.loads(text)) > MAX_DEPTH:
        raise InvalidInputError(field, f"must not be nested deeper than {MAX_DEPTH}", type(value).__name__)
    if text.count('":') > 1:
        _check_keys(value, text, field)
    return text


def _wrong_type(value: Any, default: Callable[[Any], Any] | None) -> str:
    """Return the type of the first part that is not JSON; of the whole where each part is, as with keys."""
    todo, seen = [value], set()
    for one in todo:  # which grows
        if isinstance(one, dict | list | tuple):
            if id(one) not in seen:  # a list may hold itself
                seen.add(id(one))
                todo.extend(one.values() if isinstance(one, dict) else one)
            continue
        try:
            _encoder(default).encode(one)
        except (TypeError, ValueError, RecursionError):
            return type(one).__name__
    return type(value).__name__


def encode_scalar(value: Any) -> str | None:
    """Return what `encode_json` would for a number, a text or None; None where that is not a simple matter.

    >>> encode_scalar(7), encode_scalar(float("nan"))
    ('7', None)
    """
    kind = type(value)
    if kind is int and -_LARGE_INT < value < _LARGE_INT:
        return int.__repr__(value)
    if kind is str and len(value) <= _SHORT_TEXT and value.isascii() and value.isprintable():
        return encode_basestring(value)
    return "null" if value is None else None


def _check_keys(value: Any, text: str, field: str) -> None:
    if not _has_other_keys(value):
        return
    for mapping in _mappings(json.loads(text, object_pairs_hook=_Pairs)):
        seen: set[str] = set()
        for key, _ in mapping:
            if key in seen:
                rule = 'must not have keys that are the same in JSON, such as 1 and "1": one would be lost'
                raise InvalidInputError(field, rule, type(value).__name__)
            seen.add(key)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, duplicates included."""


def _mappings(value: Any) -> Iterator[_Pairs]:
    todo = [value]
    for one in todo:
        if isinstance(one, _Pairs):
            yield one
            todo.extend(member for _, member in one)
        elif isinstance(one, list):
            todo.extend(one)


def _has_other_keys(value: Any) -> bool:
    """Whether a mapping inside has a key that is no text."""
    todo = [value]
    for one in todo:  # which grows
        if isinstance(one, dict):
            if not _TEXT.issuperset(map(type, one)):
                return True
            todo.extend([member for member in one.values() if type(member) not in _SCALARS])
        elif isinstance(one, list | tuple):
            todo.extend([member for member in one if type(member) not in _SCALARS])
    return False


def _check_bytes(text: str, field: str, most: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInputError(
            field, "must not contain lone surrogates", text[:40].encode("ascii", "replace")
        ) from None
    if size > most:
        raise PayloadTooLargeError(
            field,
            f"must be at most {most // 1024} KiB of JSON; store the data elsewhere and pass a reference to it",
            f"{size} bytes",
        )


def _depth(value: Any) -> int:
    """Return the nesting of `value`, walking level by level so that deep input cannot exhaust the stack."""
    level, depth = [value], 0
    while level:
        containers = [item for item in level if isinstance(item, dict | list | tuple)]
        depth += bool(containers)
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def hash_text(*parts: str) -> str:
    """Return a hex digest of `parts` that differs when their borders differ.

    >>> hash_text("ab", "c") == hash_text("a", "bc")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8))
        digest.update(encoded)
    return digest.hexdigest()


def storable(text: str) -> str:
    """Return text every store accepts: no NUL, no lone surrogates."""
    return text.replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode()
