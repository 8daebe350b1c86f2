"""One short name for all errors that differ only in their data: the rule by which dead letters are grouped.

Two errors have the same fingerprint when task and kind are equal and their messages are, after everything that tells
one job from another was replaced by `*`:

1. web addresses, e-mail addresses and file paths (a relative path is one with two slashes or an extension);
2. UUIDs, hexadecimal text of 8 digits or more, and words of 8 characters or more in which letters and digits alternate;
3. text in single, double or back quotes; a quote that does not end takes what follows;
4. instants and numbers, with sign, decimals, separators and exponent;

and after stars that follow one another became one (so lists of any length are alike), letters became lower case, and
white space became one space. Only the first 2,000 characters of a message count.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

#: Characters of a message that are looked at.
LOOKED_AT = 2_000
#: Digits of a fingerprint.
LENGTH = 10

_STAR = "*"
_WHERE = re.compile(
    r"""
    \b[a-z][a-z0-9+.-]{1,20}://[^\s'"`<>]+         # a web address, a database URL
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+      # an e-mail address
    | (?<![\w*])[a-z]:\\[^\s'"`<>,;)\]]*           # C:\data\x.txt
    | (?<![\w*/])(?:~|\.{1,2})?/[^\s'"`<>:,;()\[\]]+  # /data/x.txt, ~/x, ../x
    | (?<![\w*/.-])[\w.-]+(?:/[\w.-]+){2,}           # data/2031/x
    | (?<![\w*/.-])[\w.-]+/[\w-][\w.-]*\.[a-z]\w{0,4}\b  # data/x.txt
    """,
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""
    (?<!\w)(?:
      '(?:\\[\s\S]|[^\\])*?(?:'(?!\w)|\Z)
    | "(?:\\[\s\S]|[^\\])*?(?:"(?!\w)|\Z)
    | `[^`]*(?:`|\Z)
    )
    """,
    re.VERBOSE,
)
_UUID = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-z])", re.IGNORECASE)
#: Not the digits after a decimal point: those belong to a number.
_WORD = re.compile(r"(?<![0-9A-Za-z])(?<![0-9]\.)(?=[A-Za-z]*[0-9])[0-9A-Za-z]{8,}(?![0-9A-Za-z]|\.[0-9])")
_HEX = re.compile(r"(?:0x)?[0-9a-f]+", re.IGNORECASE)
_SWITCH = re.compile(r"[0-9][A-Za-z]|[A-Za-z][0-9]")
_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?z\b|\s?[+-]\d\d:?\d\d)?)?", re.IGNORECASE
)
_NUMBER = re.compile(r"(?:(?<![\w)\]*])[+-])?\.?\d+(?:[.,:_]\d+)*(?:e[+-]?\d+)?", re.IGNORECASE)
_STARS = re.compile(r"\*(?:[\s,;]*\*)+")


def normalise_message(message: str) -> str:
    """Return a message without what tells one job from another; the module says by which rule.

    >>> normalise_message("User 17 not found in 'eu-west'")
    'user * not found in *'
    >>> normalise_message("cannot read /data/2031/a.pdf: page 3 of 12")
    'cannot read *: page * of *'
    """
    text = message[:LOOKED_AT]
    for rule in (_QUOTED, _WHERE, _UUID):
        text = rule.sub(_STAR, text)
    text = _WORD.sub(_without_id, text)
    for rule in (_INSTANT, _NUMBER):
        text = rule.sub(_STAR, text)
    return " ".join(_STARS.sub(_STAR, text).casefold().split())


def _without_id(found: re.Match[str]) -> str:
    word = found[0]
    if word.isdigit():  # a number, perhaps with a sign
        return word
    return _STAR if _HEX.fullmatch(word) or len(_SWITCH.findall(word)) > 1 else word


def fingerprint(task: str, kind: str, message: str) -> str:
    """Return the fingerprint of an error: 10 hexadecimal digits that stay the same from release to release.

    >>> fingerprint("charge", "TimeoutError", "card 4711 timed out after 2.5 s")
    'c974bc0330'
    >>> fingerprint("charge", "TimeoutError", "card 9 timed out after 31 s")
    'c974bc0330'
    """
    return _digest(task, kind, message[:LOOKED_AT])


#: Where many fail, most say the same.
@lru_cache(maxsize=1_024)
def _digest(task: str, kind: str, message: str) -> str:
    digest = hashlib.sha256()
    for part in (task, kind, normalise_message(message)):
        digest.update(part.encode(errors="backslashreplace") + b"\0")
    return digest.hexdigest()[:LENGTH]
