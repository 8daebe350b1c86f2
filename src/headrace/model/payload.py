"""JSON in and out of the store: what is accepted, and how large it may be."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from headrace.model.errors import InvalidInputError, PayloadTooLargeError

#: Arguments and results above this many bytes of UTF-8 are refused: pass a reference instead.
MAX_PAYLOAD_BYTES = 256 * 1024
#: Nesting above this is refused; no parser downstream is asked to recurse further.
MAX_DEPTH = 64

_NUL_ESCAPE = "\\u0000"
#: The escape itself, not a backslash that is followed by the letters: an odd number of backslashes.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@cache
def _encoder(default: Callable[[Any], Any] | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)


def encode_json(value: Any, *, field: str, default: Callable[[Any], Any] | None = None) -> str:
    """Return `value` as compact JSON text that every store accepts.

    Raises InvalidInputError for NaN and infinities, NUL characters, lone surrogates, nesting above 64 or a type
    JSON does not have; PayloadTooLargeError above 256 KiB.

    >>> encode_json({"a": [1, "é"]}, field="arguments")
    '{"a":[1,"é"]}'
    """
    try:
        text = _encoder(default).encode(value)
    except RecursionError:
        raise InvalidInputError(field, f"must not be nested deeper than {MAX_DEPTH}", type(value).__name__) from None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(field, f"must be JSON ({error})", type(value).__name__) from None
    if len(text) > MAX_PAYLOAD_BYTES // 4 or not text.isascii():
        _check_bytes(text, field)
    if _NUL_ESCAPE in text and _NUL.search(text):
        raise InvalidInputError(field, "must not contain NUL characters", "\\u0000")
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(json.loads(text)) > MAX_DEPTH:
        raise InvalidInputError(field, f"must not be nested deeper than {MAX_DEPTH}", type(value).__name__)
    return text


def _check_bytes(text: str, field: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInputError(
            field, "must not contain lone surrogates", text[:40].encode("ascii", "replace")
        ) from None
    if size > MAX_PAYLOAD_BYTES:
        raise PayloadTooLargeError(
            field,
            f"must be at most {MAX_PAYLOAD_BYTES // 1024} KiB of JSON; store the data elsewhere and pass a "
            "reference to it",
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
