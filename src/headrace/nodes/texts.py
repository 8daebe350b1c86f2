"""Bytes as text, by the names that encodings have in flows."""

from __future__ import annotations

from headrace.nodes.base import NodeError

#: Names that Python has another word for, or would not take as what is meant.
_NAMES = {"ucs2": "utf-16-le", "ucs-2": "utf-16-le", "utf16le": "utf-16-le", "binary": "latin-1", "": "utf-8"}
_REFUSED = frozenset({"idna", "mbcs", "oem", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})


def decoded(data: bytes, encoding: str) -> str:
    """Return bytes as text, without a byte order mark. Raises NodeError for what is no text in this encoding.

    >>> decoded(b"\\xef\\xbb\\xbfcaf\\xc3\\xa9", "utf8")
    'café'
    """
    name = _NAMES.get(encoding.lower(), encoding.lower())
    if name.replace("-", "_") in _REFUSED:
        raise NodeError(f"options.encoding {encoding!r} is not one that files have; use utf8 or latin1")
    try:
        text = data.decode(name).removeprefix("\ufeff")
    except LookupError:
        raise NodeError(f"options.encoding {encoding!r} is not known; use utf8, utf16le, latin1 or ascii") from None
    except UnicodeError as error:
        raise NodeError(f"the file is no text in {name}: {error}; set options.encoding") from None
    if "\0" in text:
        raise NodeError(f"the file is no text in {name}: it holds NUL characters; set options.encoding")
    return text
