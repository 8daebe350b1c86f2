"""Durations as people write them: `90s`, `2m`, `1h30m`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

from headrace.model.errors import InvalidInputError

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


#: Far beyond every use, and small enough that any instant plus it is an instant.
_LONGEST = timedelta(days=36_525)


def parse_duration(value: str | float | timedelta, *, field: str = "duration") -> timedelta:
    """Return `value` as a timedelta; a bare number is seconds.

    Raises InvalidInputError when the text is not a duration, or the value is negative or above 100 years.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    try:
        parsed = _parsed(value)
    except (ValueError, OverflowError):  # not a number, infinite, or too large for a timedelta
        parsed = None
    if parsed is None:
        raise InvalidInputError(field, 'must be a duration such as "90s", "2m" or "7d"', value)
    if parsed < timedelta():
        raise InvalidInputError(field, "must not be negative", value)
    if parsed > _LONGEST:
        raise InvalidInputError(field, "must be at most 100 years", value)
    return parsed


def _parsed(value: object) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        parts = _PART.findall(value)
        return sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    return None


def format_duration(value: timedelta) -> str:
    """Return the shortest text that `parse_duration` reads back.

    >>> format_duration(timedelta(minutes=90))
    '1h30m'
    """
    milliseconds = round(value.total_seconds() * 1000)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
