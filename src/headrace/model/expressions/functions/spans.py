"""Arithmetic of dates: days and above by the calendar, hours and below by the clock."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.model.expressions.errors import Fault
from headrace.model.expressions.moments import Moment

_MONTHS = {"years": 12, "quarters": 3, "months": 1}
_DAYS = {"weeks": 7, "days": 1}
_SECONDS = {"hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}
_UNITS = (*_MONTHS, *_DAYS, *_SECONDS)
_BELOW: dict[str, dict[str, Any]] = {
    "hours": {"minute": 0, "second": 0},
    "minutes": {"second": 0},
    "seconds": {},
    "milliseconds": {},
}
#: Amounts beyond lead out of the years that there are.
_MOST = 1e14


def unit_of(name: Any) -> str:
    """Return a unit in the plural. Raises Fault.

    >>> unit_of("day")
    'days'
    """
    plural = name if isinstance(name, str) and name.endswith("s") else f"{name}s" if isinstance(name, str) else ""
    if plural not in _UNITS:
        raise Fault(f"needs a unit, one of {', '.join(_UNITS)}")
    return plural


def moved(moment: Moment, amounts: dict[str, float], sign: int) -> Moment:
    """Return an instant so much later (or earlier). Raises Fault beyond the years 2 to 9998."""
    if any(abs(amount) > _MOST for amount in amounts.values()):
        raise Fault("leads beyond the years 2 to 9998")
    months = sum(int(amount * _MONTHS[unit]) for unit, amount in amounts.items() if unit in _MONTHS)
    days = sum(amount * _DAYS[unit] for unit, amount in amounts.items() if unit in _DAYS)
    seconds = sum(amount * _SECONDS[unit] for unit, amount in amounts.items() if unit in _SECONDS)
    try:
        at = _by_days(_by_months(moment.at, sign * months), sign * days)
        return Moment((at.astimezone(UTC) + timedelta(seconds=sign * seconds)).astimezone(moment.at.tzinfo))
    except (OverflowError, ValueError):
        raise Fault("leads beyond the years 2 to 9998") from None


def _by_months(at: datetime, months: int) -> datetime:
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    if not 2 <= year <= 9998:
        raise OverflowError
    return at.replace(year=year, month=month + 1, day=min(at.day, calendar.monthrange(year, month + 1)[1]), fold=0)


def _by_days(at: datetime, days: float) -> datetime:
    whole = int(days)
    moved_on = (at + timedelta(days=whole)).replace(fold=0) if whole else at
    return moved_on if days == whole else moved_on + timedelta(days=days - whole)


def start_of(moment: Moment, unit: str) -> Moment:
    """Return the beginning of the unit that an instant is in."""
    at = moment.at
    if unit in _SECONDS:
        fine = at.microsecond // 1000 * 1000 if unit == "milliseconds" else 0
        return Moment(at.replace(**_BELOW[unit], microsecond=fine))
    day = at.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit == "weeks":
        return moved(Moment(day), {"days": day.weekday()}, -1)
    if unit in _MONTHS:
        step = _MONTHS[unit]
        day = day.replace(day=1, month=(day.month - 1) // step * step + 1)
    return Moment(day)


def end_of(moment: Moment, unit: str) -> Moment:
    """Return the last millisecond of the unit that an instant is in."""
    return moved(moved(start_of(moment, unit), {unit: 1}, 1), {"milliseconds": 1}, -1)


def difference(moment: Moment, other: Moment, unit: str) -> float:
    """Return how many units lie between two instants; negative if the other one is later."""
    later, earlier = moment.at, other.at.astimezone(moment.at.tzinfo)
    if unit in _SECONDS:
        return (moment.milliseconds - other.milliseconds) / (1000 * _SECONDS[unit])
    if unit in _DAYS:
        return (later.replace(tzinfo=None) - earlier.replace(tzinfo=None)) / timedelta(days=_DAYS[unit])
    return _months_between(Moment(earlier), moment) / _MONTHS[unit]


def _months_between(earlier: Moment, later: Moment) -> float:
    if later.at < earlier.at:
        return -_months_between(later, earlier)
    whole = (later.at.year - earlier.at.year) * 12 + later.at.month - earlier.at.month
    if moved(earlier, {"months": whole}, 1).at > later.at:
        whole -= 1
    begin = moved(earlier, {"months": whole}, 1).at
    length = moved(earlier, {"months": whole + 1}, 1).at - begin
    return whole + (later.at - begin) / length
