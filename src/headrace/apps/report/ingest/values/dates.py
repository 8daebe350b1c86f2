"""Dates of executions, as ISO 8601 without a zone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from headrace.apps.report.ingest.cells import MAX_WORD, Cell

#: Other years are no years of tests, but numbers that were taken for dates.
FIRST_YEAR, LAST_YEAR = 1990, 2100
#: Day 0 of Excel's numbers.
_EPOCH = datetime(1899, 12, 30)
_TIME = (
    r"(?:[T\s,]*(?P<hour>\d{1,2})[:时点](?P<minute>\d{1,2})(?:[:分](?P<second>\d{1,2})?(?:[.,]\d+)?)?[秒分]?"
    r"\s*(?P<half>[ap]m|上午|下午)?)?"
)
_ZONE = r"\s*(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
_DAY, _NAME, _YEAR = r"(?P<day>\d{1,2})", r"(?P<name>[a-z]{3,9})", r"(?P<year>\d{4})"
_TH = r"(?:st|nd|rd|th)?"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text + _TIME + _ZONE, re.IGNORECASE)


_YEAR_FIRST = _pattern(rf"{_YEAR}[-/.年](?P<month>\d{{1,2}})[-/.月]{_DAY}日?")
_COMPACT = _pattern(rf"{_YEAR}(?P<month>\d{{2}})(?P<day>\d{{2}})")
_YEAR_LAST = _pattern(rf"(?P<one>\d{{1,2}})(?P<sep>[-/.])(?P<two>\d{{1,2}})(?P=sep){_YEAR}")
_DAY_NAMED = _pattern(rf"{_DAY}{_TH}[\s\-]+{_NAME}\.?,?[\s\-]+{_YEAR}")
_NAME_FIRST = _pattern(rf"{_NAME}\.?\s+{_DAY}{_TH},?\s+{_YEAR}")
_WHOLE = (_YEAR_FIRST, _COMPACT, _DAY_NAMED, _NAME_FIRST)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SERIAL = re.compile(r"\d{5}(?:\.\d+)?")


@dataclass(frozen=True)
class When:
    """A date that was understood, and whether it could have been another."""

    text: str
    is_ambiguous: bool = False


def when_of(cell: Cell, day_first: bool) -> When | None:
    """Return the date of a cell; None where it is none.

    >>> when_of("2026年3月5日", False).text, when_of("05.03.2026", False).text, when_of(46086, False).text
    ('2026-03-05', '2026-03-05', '2026-03-05')
    >>> when_of("03/04/2026", False), when_of("2026-02-30", False)
    (When(text='2026-03-04', is_ambiguous=True), None)
    """
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int | float):
        return _of_serial(float(cell))
    if isinstance(cell, datetime | date):
        return _when(cell)
    return _of_text(cell, day_first) if isinstance(cell, str) else None


def is_day_first(cells: Iterable[Cell]) -> bool:
    """Return whether a column has dates such as 25/03/2026, which begin with a day, and none such as 03/25/2026."""
    days = months = 0
    for cell in cells:
        match = _YEAR_LAST.fullmatch(_normal(cell)) if isinstance(cell, str) else None
        if match and match["sep"] != ".":
            days += int(match["one"]) > 12
            months += int(match["two"]) > 12
    return days > 0 and months == 0


def _normal(text: str) -> str:
    """Return a text as the patterns expect it; a long one is no date."""
    return unicodedata.normalize("NFKC", text).strip() if len(text) <= MAX_WORD else ""


def _of_serial(number: float) -> When | None:
    """Return the date of a number of Excel; 20260305 is a date that was typed without signs."""
    if number.is_integer() and FIRST_YEAR * 10_000 < number < (LAST_YEAR + 1) * 10_000:
        return _of_text(str(int(number)), False)
    if not 30_000 < number < 80_000:
        return None
    found = _EPOCH + timedelta(seconds=round(number * 86_400))
    return _when(found.date() if float(number).is_integer() else found)


def _of_text(cell: str, day_first: bool) -> When | None:
    text = _normal(cell)
    if _SERIAL.fullmatch(text):
        return _of_serial(float(text))
    for pattern in _WHOLE:
        match = pattern.fullmatch(text)
        if match:
            return _built(match, _month(match), int(match["day"]))
    match = _YEAR_LAST.fullmatch(text)
    if match is None:
        return None
    one, two = int(match["one"]), int(match["two"])
    # With points a date begins with its day wherever it is written so.
    is_certain = match["sep"] == "." or one > 12 or two > 12 or one == two
    begins_with_day = match["sep"] == "." or one > 12 or (day_first and two <= 12)
    month, day = (two, one) if begins_with_day else (one, two)
    found = _built(match, month, day)
    return When(found.text, not is_certain) if found else None


def _month(match: re.Match[str]) -> int:
    if "name" not in match.re.groupindex:
        return int(match["month"])
    name = match["name"].lower()[:3]
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0


def _built(match: re.Match[str], month: int, day: int) -> When | None:
    try:
        if match["hour"] is None:
            return _when(date(int(match["year"]), month, day))
        hour = _hour(int(match["hour"]), (match["half"] or "").lower())
        return _when(datetime(int(match["year"]), month, day, hour, int(match["minute"]), int(match["second"] or 0)))
    except ValueError:
        return None


def _hour(hour: int, half: str) -> int:
    if half in ("pm", "下午") and hour < 12:
        return hour + 12
    return 0 if half in ("am", "上午") and hour == 12 else hour


def _when(found: date) -> When | None:
    if not FIRST_YEAR <= found.year <= LAST_YEAR:
        return None
    return When(found.isoformat() if not isinstance(found, datetime) else _without_parts(found))


def _without_parts(found: datetime) -> str:
    """Return a time to the second; one of midnight is a date alone, as sheets have them."""
    at = found.replace(microsecond=0, tzinfo=None)
    return at.date().isoformat() if (at.hour, at.minute, at.second) == (0, 0, 0) else at.isoformat()


def values_at(rows: Sequence[Sequence[Cell]], index: int) -> Iterable[Cell]:
    """Yield the cells of a column."""
    return (row[index] for row in rows if index < len(row))
