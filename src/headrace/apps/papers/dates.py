"""Dates in running text, to the precision they are given: 5 March 2021, March 2021, 2021, 2021-03-05, 05/03/2021."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1[5-9]\d\d|20\d\d|21\d\d)"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?<!\d){_YEAR}-(?P<month>\d{{1,2}})(?:-(?P<day>\d{{1,2}}))?(?!\d)",
        rf"\b{_DAY}\.?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b",
        rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}\b",
        rf"(?<!\d\s)\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
        rf"(?<!\d)(?P<day>\d{{1,2}})[./](?P<month>\d{{1,2}})[./]{_YEAR}(?!\d)",
        rf"(?<!\d)(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/{_YEAR}(?!\d)",
        rf"(?<![\w.,]){_YEAR}(?!\d|[.,]\d|-\d{{1,2}}(?!\d))",
    )
)


@dataclass(frozen=True, slots=True)
class FoundDate:
    """A date as it stands in a text."""

    #: ISO 8601, to the precision given: 2021, 2021-03 or 2021-03-05.
    iso: str
    text: str
    start: int


def dates_in(text: str) -> Iterator[FoundDate]:
    """Every date of a text, the precise forms first; 05/03/2021 in both its readings, and years on their own too.

    >>> [found.iso for found in dates_in("Registered on 5 March 2021, begun in Sept. 2021.")]
    ['2021-03-05', '2021-09', '2021', '2021']
    """
    for form in _FORMS:
        for match in form.finditer(text):
            iso = _iso(match.groupdict())
            if iso is not None:
                yield FoundDate(iso, match[0], match.start())


def parse_date(text: str) -> str | None:
    """The date a short text holds as ISO 8601, the most precise reading; None if there is none.

    >>> parse_date("March 5th, 2021"), parse_date("in 2019"), parse_date("30 February 2020")
    ('2021-03-05', '2019', None)
    """
    found = next(iter(dates_in(text)), None)
    if found is None or (len(found.iso) == 4 and re.search(_MONTH + r"|\d[-./]\d\d?(?!\d)", text, re.IGNORECASE)):
        return None
    return found.iso


def _iso(parts: dict[str, str | None]) -> str | None:
    year, month, day = parts["year"], parts.get("month"), parts.get("day")
    if month is None:
        return year
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    try:
        whole = date(int(year or 0), number, int(day or 1))
    except ValueError:
        return None
    return whole.isoformat() if day else whole.isoformat()[:7]
