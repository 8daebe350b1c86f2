"""Points in time that stand in items and parameters: ISO 8601 and the other forms that people and mails write."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any

_YEAR_OR_MONTH = re.compile(r"\d{4}(-\d{2})?")
_MAX_LENGTH = 64
_DATES = ("%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%m/%d/%Y", "%Y/%m/%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(value: Any, zone: tzinfo) -> datetime | None:
    """Return the point in time that a value stands for, None where it stands for none.

    A number is milliseconds since 1970; a text without a zone is meant in `zone`.

    >>> moment_of("2026-03-05T10:00:00Z", UTC) == moment_of(1772704800000, UTC)
    True
    >>> moment_of("soon", UTC) is None
    True
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of_milliseconds(value)
    found = _of_text(value.strip()) if isinstance(value, str) else value
    if not isinstance(found, datetime):
        return None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _of_milliseconds(value: float) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=value)
    except (OverflowError, ValueError):
        return None


def _of_text(text: str) -> datetime | None:
    if not text or len(text) > _MAX_LENGTH:
        return None
    if _YEAR_OR_MONTH.fullmatch(text):
        text += "-01-01" if len(text) == 4 else "-01"
    for read in (datetime.fromisoformat, parsedate_to_datetime, _of_words):
        try:
            return read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _of_words(text: str) -> datetime:
    for date in _DATES:
        for time in _TIMES:
            try:
                return datetime.strptime(text, date + time)
            except ValueError:
                continue
    raise ValueError(text)
