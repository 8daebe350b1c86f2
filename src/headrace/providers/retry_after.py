"""How long a provider asks to wait: `retry-after-ms` first, then `retry-after` in seconds, then as an HTTP date."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

#: A longer wait is a mistake of the server; a job that waits a day has its own means.
_LONGEST = timedelta(days=1)


def read_retry_after(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """The wait these headers ask for, at least 0 and at most a day; None when they do not say.

    >>> read_retry_after({"retry-after": "2"}, now=datetime.now(UTC))
    datetime.timedelta(seconds=2)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        wait = _number(headers.get(name))
        if wait is not None:
            return _within_bounds(wait * unit)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if until.tzinfo is None:  # a date that says "-0000"
        until = until.replace(tzinfo=UTC)
    return _within_bounds((until - now).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _within_bounds(seconds: float) -> timedelta:
    return timedelta(seconds=min(max(seconds, 0.0), _LONGEST.total_seconds()))
