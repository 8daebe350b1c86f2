"""Dates read by a pattern, in the letters that expressions write them with: `dd.MM.yyyy HH:mm`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from headrace.nodes.base import NodeError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TOKEN = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")
_NAME = r"([A-Za-z]{3,9})\.?"
_ZONE = r"(Z|[+-]\d{2}:?(?:\d{2})?)"
#: The letters of a pattern: what they look like, and which part of a date they are.
_LETTERS: dict[str, tuple[str, str]] = {
    "yyyy": (r"(\d{4})", "year"),
    "y": (r"(\d{1,4})", "year"),
    "yy": (r"(\d{2})", "short"),
    "MMMM": (_NAME, "name"),
    "MMM": (_NAME, "name"),
    "MM": (r"(\d{2})", "month"),
    "M": (r"(\d{1,2})", "month"),
    "dd": (r"(\d{2})", "day"),
    "d": (r"(\d{1,2})", "day"),
    "HH": (r"(\d{2})", "hour"),
    "H": (r"(\d{1,2})", "hour"),
    "hh": (r"(\d{2})", "half"),
    "h": (r"(\d{1,2})", "half"),
    "mm": (r"(\d{2})", "minute"),
    "m": (r"(\d{1,2})", "minute"),
    "ss": (r"(\d{2})", "second"),
    "s": (r"(\d{1,2})", "second"),
    "SSS": (r"(\d{3})", "millisecond"),
    "a": (r"([AaPp][Mm])", "noon"),
    "ZZZ": (_ZONE, "zone"),
    "ZZ": (_ZONE, "zone"),
    "Z": (_ZONE, "zone"),
    "EEEE": (_NAME, ""),
    "EEE": (_NAME, ""),
    "X": (r"(-?\d{1,12})", "seconds"),
    "x": (r"(-?\d{1,15})", "milliseconds"),
}
_SAME = {"L": "M", "c": "E"}
_LONGEST = 200


def read_date(text: str, pattern: str, zone: tzinfo) -> datetime:
    """Return the date of a text that has the form of a pattern, in `zone` unless the text has one. Raises NodeError.

    >>> read_date("5.3.2026 9:05 PM", "d.M.yyyy h:mm a", UTC).isoformat()
    '2026-03-05T21:05:00+00:00'
    """
    shape, parts = _compiled(pattern)
    found = re.fullmatch(shape, text.strip()[:_LONGEST])
    if found is None:
        raise NodeError(f"the date {text[:40]!r} does not have the form {pattern!r} of options.fromFormat")
    try:
        return _date(dict(zip(parts, found.groups(), strict=True)), zone)
    except (ValueError, OverflowError, KeyError):
        raise NodeError(f"there is no date {text[:40]!r}, read as {pattern!r}") from None


def _compiled(pattern: str) -> tuple[str, list[str]]:
    """Return a pattern as a regular expression, and the part of a date that each of its groups is."""
    shape, parts = "", []
    for found in _TOKEN.finditer(pattern[:_LONGEST]):
        letters = _SAME.get(found[2], found[2]) * len(found.group()) if found[2] else ""
        if not letters:
            shape += re.escape(found[1] if found[1] is not None else found.group())
        elif letters in _LETTERS and _LETTERS[letters][1] in parts:
            # Digits that several parts share could be split in more ways than can be tried.
            raise NodeError(f"options.fromFormat: {found.group()[:20]!r} stands there twice, or in another form")
        elif letters in _LETTERS:
            shape += _LETTERS[letters][0]
            parts.append(_LETTERS[letters][1])
        else:
            raise NodeError(f"options.fromFormat: {found.group()[:20]!r} means nothing; text goes in single quotes")
    return shape, parts


def _date(parts: dict[str, str], zone: tzinfo) -> datetime:
    if "seconds" in parts or "milliseconds" in parts:
        seconds = int(parts["seconds"]) if "seconds" in parts else int(parts["milliseconds"]) / 1000
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).astimezone(zone)
    year = int(parts["year"]) if "year" in parts else _full_year(int(parts["short"]))
    month = _MONTHS.index(parts["name"][:3].lower()) + 1 if "name" in parts else int(parts.get("month", 1))
    return datetime(
        year, month, int(parts.get("day", 1)), _hour(parts), int(parts.get("minute", 0)), int(parts.get("second", 0)),
        int(parts.get("millisecond", 0)) * 1000, tzinfo=_offset(parts["zone"]) if "zone" in parts else zone,
    )  # fmt: skip


def _full_year(short: int) -> int:
    """Two digits are of 1961 to 2060, as in Luxon."""
    return short + (1900 if short > 60 else 2000)


def _hour(parts: dict[str, str]) -> int:
    if "half" not in parts:
        return int(parts.get("hour", 0))
    half = int(parts["half"])
    if not 1 <= half <= 12:
        raise ValueError(half)
    return half % 12 + (12 if parts.get("noon", "am").lower() == "pm" else 0)


def _offset(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)
