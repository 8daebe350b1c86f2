"""What providers say, made fit to be kept: no store and no log takes every character, nor names of any length."""

from __future__ import annotations

from typing import Any

#: Ids of requests and names of models have some tens of characters.
LONGEST_NAME = 200
_UNKNOWN = "\ufffd"


def clean_text(text: str) -> str:
    """The text with U+FFFD in the place of NUL and of lone surrogates, which have no UTF-8; halves of pairs are joined.

    >>> clean_text("a\\0b\\ud800") == "a\\ufffdb\\ufffd"
    True
    """
    if "\0" in text:
        text = text.replace("\0", _UNKNOWN)
    # ASCII is known as such without a look at its characters.
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_name(said: Any) -> str:
    """The printable characters of an id or a name, `LONGEST_NAME` of them at most; empty for what is no text.

    >>> clean_name("req\\0-1"), clean_name(7)
    ('req-1', '')
    """
    if not isinstance(said, str):
        return ""
    # What is cut off is not looked at: a name may have megabytes.
    said = said[:LONGEST_NAME]
    return said if said.isprintable() else "".join(filter(str.isprintable, said))


def split_half(text: str) -> tuple[str, str]:
    """The text, and apart from it the first half of a pair at its end, whose second half may come with the next part.

    >>> split_half("a\\ud83c") == ("a", "\\ud83c"), split_half("a")
    (True, ('a', ''))
    """
    return (text[:-1], text[-1]) if "\ud800" <= text[-1:] <= "\udbff" else (text, "")
