"""Bytes as text, by the names that encodings have in flows."""

from __future__ import annotations

import codecs
import re

from headrace.nodes.base import NodeError
from headrace.nodes.json_texts import wrong_part

#: Names that Python has another word for, or would not take as what is meant.
_NAMES = {"ucs2": "utf-16-le", "ucs-2": "utf-16-le", "utf16le": "utf-16-le", "binary": "latin-1", "": "utf-8"}
_REFUSED = frozenset({"idna", "mbcs", "oem", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")


def decoded(data: bytes, encoding: str) -> str:
    """Return bytes as text, without a byte order mark. Raises NodeError for what is no text in this encoding.

    >>> decoded(b"\\xef\\xbb\\xbfcaf\\xc3\\xa9", "utf8")
    'café'
    """
    name = _codec(encoding)
    try:
        text = data.decode(name).removeprefix("\ufeff")
    except LookupError:  # a codec of bytes
        raise _unknown(encoding) from None
    except UnicodeError as error:
        raise NodeError(f"the file is no text in {name}: {error}; set options.encoding") from None
    if wrong := wrong_part(text):
        raise NodeError(f"the file is no text in {name}: {wrong}; set options.encoding")
    return text


def encoded(text: str) -> bytes:
    """Return text as UTF-8. Raises NodeError for one that holds half of a character.

    >>> encoded("é")
    b'\\xc3\\xa9'
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        raise NodeError(f"the text holds half of a character, \\u{half:04x}: do not cut characters in two") from None


def _codec(encoding: str) -> str:
    """Return the name of a codec. Raises NodeError for none, and for one that no file has."""
    name = _NAMES.get(encoding.lower(), encoding.lower())
    try:
        # Not as it is: a NUL within a name is an error of another kind, and some signs are as good as "-".
        known = codecs.lookup(name).name if _NAME.fullmatch(name) else ""
    except LookupError:
        known = ""
    if not known:
        raise _unknown(encoding)
    if known.replace("-", "_") in _REFUSED:
        raise NodeError(f"options.encoding {encoding!r} is not one that files have; use utf8 or latin1")
    return name


def _unknown(encoding: str) -> NodeError:
    return NodeError(f"options.encoding {encoding[:40]!r} is not known; use utf8, utf16le, latin1 or ascii")
