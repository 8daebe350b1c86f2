"""Durations as people write them: `90s`, `2m`, `1h30m`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

from headrace.model.errors import InvalidInputError

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration(value: str | float | timedelta, *, field: str = "duration") -> timedelta:
    """Return `value` as a timedelta; a bare number is seconds.

    Raises InvalidInputError when the text is not a duration or the value is negative.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        parsed = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        parsed = timedelta(seconds=value)
    elif isinstance(value, str) and _WHOLE.fullmatch(value):
        parts = _PART.findall(value)
        parsed = sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    else:
        raise InvalidInputError(field, 'must be a duration such as "90s", "2m" or "7d"', value)
    if parsed < timedelta():
        raise InvalidInputError(field, "must not be negative", value)
    return parsed


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
