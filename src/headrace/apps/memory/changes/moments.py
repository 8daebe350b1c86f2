"""Times as Debezium writes them: a text of ISO 8601, or a whole number of the time's precision."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace import InvalidInputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)"
)
#: Years 2000 to 2199 in seconds: the units below cannot be taken for each other.
_SECONDS = (946_684_800, 7_258_118_400)
#: io.debezium.time.Timestamp, MicroTimestamp, NanoTimestamp: units of a second.
_UNITS = (1_000, 1_000_000, 1_000_000_000)
_RULE = (
    "must be a time with its zone such as 2026-05-01T12:00:00Z, or milli-, micro- or nanoseconds since 1970, in the "
    "years 2000 to 2199"
)


def moment_of(field: str, value: Any) -> datetime:
    """Return a time in UTC. Raises InvalidInputError naming the field.

    Whether a number counts milli-, micro- or nanoseconds is known by its size, for without a schema nothing else says.

    >>> moment_of("t", "2026-05-01T14:00:00.5+02:00").isoformat()
    '2026-05-01T12:00:00.500000+00:00'
    >>> moment_of("t", 1777636800000) == moment_of("t", 1777636800000000) == moment_of("t", "2026-05-01T12:00:00Z")
    True
    """
    if isinstance(value, str) and _TEXT.fullmatch(value):
        return _of_text(field, value)
    if isinstance(value, int) and not isinstance(value, bool):
        for unit in _UNITS:
            if _SECONDS[0] * unit <= value < _SECONDS[1] * unit:
                return _EPOCH + timedelta(microseconds=value * 1_000_000 // unit)
    raise InvalidInputError(field, _RULE, value)


def _of_text(field: str, value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInputError(field, _RULE, value) from None
    if not _SECONDS[0] <= moment.timestamp() < _SECONDS[1]:
        raise InvalidInputError(field, _RULE, value)
    return moment
