"""Functions of dates, which are `$now`, `$today`, what these functions give, and ISO texts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.model.expressions.budget import Run
from headrace.model.expressions.clock import current, zone_of
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.functions.listing import Table
from headrace.model.expressions.functions.patterns import formatted
from headrace.model.expressions.functions.spans import difference, end_of, moved, start_of, unit_of
from headrace.model.expressions.moments import Moment, moment_of
from headrace.model.expressions.values import kind, need_text, number, to_number

DATES = Table("Dates and times")

#: Members of a date.
MEMBERS: dict[str, Callable[[datetime], Any]] = {
    "year": lambda at: at.year,
    "quarter": lambda at: (at.month + 2) // 3,
    "month": lambda at: at.month,
    "day": lambda at: at.day,
    "weekday": lambda at: at.isoweekday(),
    "weekNumber": lambda at: at.isocalendar().week,
    "ordinal": lambda at: at.timetuple().tm_yday,
    "hour": lambda at: at.hour,
    "minute": lambda at: at.minute,
    "second": lambda at: at.second,
    "millisecond": lambda at: at.microsecond // 1000,
    "zoneName": lambda at: str(at.tzinfo),
}


def _moment(run: Run, value: Any) -> Moment:
    return moment_of(value, zone_of(run))


@DATES.listed("DateTime.now", "The time of the evaluation, as $now.", ("DateTime.now() == $now", True))
def now(run: Run) -> Moment:
    """Return the current instant."""
    return current(run)


@DATES.listed("Date.now", "The milliseconds of $now since 1970.", ("Date.now() == $now.toMillis()", True))
def now_milliseconds(run: Run) -> int:
    """Return the current instant as a number."""
    return current(run).milliseconds


@DATES.listed(
    "DateTime.fromISO", "The date of an ISO text.", ("DateTime.fromISO('2026-03-01').month", 3), also=("toDateTime",)
)
def from_iso(run: Run, text: Any) -> Moment:
    """Return the instant of a text."""
    return _moment(run, text)


def _from_seconds(run: Run, seconds: float) -> Moment:
    try:
        return Moment(datetime.fromtimestamp(0, UTC).__add__(timedelta(seconds=seconds)).astimezone(zone_of(run)))
    except (ValueError, OverflowError):
        raise Fault("leads beyond the years 2 to 9998") from None


@DATES.listed("DateTime.fromMillis", "The date so many milliseconds after 1970.", ("DateTime.fromMillis(0).year", 1970))
def from_milliseconds(run: Run, value: Any) -> Moment:
    """Return the instant of a number."""
    return _from_seconds(run, to_number(value) / 1000)


@DATES.listed("DateTime.fromSeconds", "The date so many seconds after 1970.", ("DateTime.fromSeconds(0).year", 1970))
def from_seconds(run: Run, value: Any) -> Moment:
    """Return the instant of a number."""
    return _from_seconds(run, to_number(value))


@DATES.listed(
    "toISO", "The date as ISO text.", ("'2026-03-01T09:00Z'.toISO()", "2026-03-01T09:00:00.000Z"), also=("toISOString",)
)
def to_iso(run: Run, value: Any) -> str:
    """Return its text."""
    return _moment(run, value).iso


@DATES.listed("toISODate", "The day of the date as ISO text.", ("'2026-03-01T09:00Z'.toISODate()", "2026-03-01"))
def to_iso_date(run: Run, value: Any) -> str:
    """Return its day."""
    return _moment(run, value).at.date().isoformat()


@DATES.listed(
    "toFormat",
    "The date by a pattern: yyyy MM dd HH mm ss SSS, LLLL and MMM for months, cccc and EEE for days, 'text' as it is.",
    ("'2026-03-01T09:05Z'.toFormat(\"dd.MM.yyyy 'at' HH:mm\")", "01.03.2026 at 09:05"),
    also=("format",),
)
def to_format(run: Run, value: Any, pattern: Any) -> str:
    """Return it by a pattern."""
    return formatted(run, _moment(run, value).at, need_text(pattern))


def _amounts(amount: Any, unit: Any) -> dict[str, float]:
    if type(amount) is dict and len(amount) <= 12:
        return {unit_of(name): to_number(one) for name, one in amount.items()}
    if type(amount) is dict:
        raise Fault("takes at most 12 units")
    return {unit_of(unit): to_number(amount)}


@DATES.listed(
    "plus",
    "A later date: by members of an object, or by a number and a unit.",
    ("'2026-01-31'.plus({months: 1}).toISODate()", "2026-02-28"),
)
def plus(run: Run, value: Any, amount: Any, unit: Any = "milliseconds") -> Moment:
    """Return a later instant."""
    return moved(_moment(run, value), _amounts(amount, unit), 1)


@DATES.listed("minus", "An earlier date, as plus().", ("'2026-03-01'.minus(1, 'day').toISODate()", "2026-02-28"))
def minus(run: Run, value: Any, amount: Any, unit: Any = "milliseconds") -> Moment:
    """Return an earlier instant."""
    return moved(_moment(run, value), _amounts(amount, unit), -1)


@DATES.listed(
    "startOf",
    "The beginning of the year, quarter, month, week, day, hour, minute or second.",
    ("'2026-03-15'.startOf('month').day", 1),
    also=("beginningOf",),
)
def starting(run: Run, value: Any, unit: Any) -> Moment:
    """Return the beginning of a unit."""
    return start_of(_moment(run, value), unit_of(unit))


@DATES.listed("endOf", "The last millisecond of a unit, as startOf().", ("'2026-02-10'.endOf('month').day", 28))
def ending(run: Run, value: Any, unit: Any) -> Moment:
    """Return the end of a unit."""
    return end_of(_moment(run, value), unit_of(unit))


@DATES.listed(
    "diff",
    "The time since another date, as an object with a member for the unit.",
    ("'2026-03-03'.diff('2026-03-01', 'days')", {"days": 2}),
)
def diff(run: Run, value: Any, other: Any, unit: Any = "milliseconds") -> dict[str, float]:
    """Return a difference under the name of its unit."""
    return {unit_of(unit): diff_to(run, value, other, unit)}


@DATES.listed(
    "diffTo", "The time since another date in a unit, as a number.", ("'2026-03-03'.diffTo('2026-03-01', 'days')", 2)
)
def diff_to(run: Run, value: Any, other: Any, unit: Any = "days") -> float:
    """Return a difference."""
    return number(difference(_moment(run, value), _moment(run, other), unit_of(unit)))


@DATES.listed(
    "toMillis", "The milliseconds since 1970.", ("'1970-01-01T00:00:01Z'.toMillis()", 1000), also=("getTime", "valueOf")
)
def to_milliseconds(run: Run, value: Any) -> int:
    """Return it as a number."""
    return _moment(run, value).milliseconds


@DATES.listed("toSeconds", "The seconds since 1970.", ("'1970-01-01T00:00:01Z'.toSeconds()", 1))
def to_seconds(run: Run, value: Any) -> float:
    """Return it as a number."""
    return number(_moment(run, value).milliseconds / 1000)


@DATES.listed(
    "setZone",
    "The same time in another zone.",
    ("'2026-01-01T00:00Z'.setZone('Europe/Berlin').hour", 1),
    also=("toTimezone",),
)
def set_zone(run: Run, value: Any, zone: Any) -> Moment:
    """Return it in a zone."""
    name = need_text(zone)
    try:
        return Moment(_moment(run, value).at.astimezone(UTC if name.lower() == "utc" else _zone(name)))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Fault(f"needs the name of a zone such as Europe/Berlin, got {name[:40]!r}") from None


def _zone(name: str) -> ZoneInfo:
    if len(name) > 60 or not name.isascii() or ".." in name or "\0" in name:
        raise ValueError(name)
    return ZoneInfo(name)


@DATES.listed("toUTC", "The same time in UTC.", ("'2026-01-01T02:00+02:00'.toUTC().hour", 0))
def to_utc(run: Run, value: Any) -> Moment:
    """Return it in UTC."""
    return Moment(_moment(run, value).at.astimezone(UTC))


@DATES.listed("as", "A difference of diff() as a number, in the unit it has.", ("({days: 2}).as('days')", 2))
def in_unit(run: Run, value: Any, unit: Any) -> Any:
    """Return the member of a difference."""
    if type(value) is not dict or unit_of(unit) not in value:
        raise Fault(f"needs a difference in {unit_of(unit)}, got {kind(value)}: name the unit in diff() too")
    return value[unit_of(unit)]
