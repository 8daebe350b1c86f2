"""The rules of schedule triggers as cron expressions of five fields: minute, hour, day of month, month, day of week.

Every three days or every five hours is cron's `*/3` and `*/5`: it begins anew with each month and at each midnight.
A minute or an hour that is not written is 0, so that two schedules with equal rules fire together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.nodes.parameters import Parameters

Entries = Iterator[Parameters]


def rule_entries(parameters: Mapping[str, Any]) -> Entries:
    """Yield the rules of a schedule trigger; without any it fires once a day, as in n8n."""
    at = Parameters(parameters)
    yield from _numbered(at.members("rule").get("interval") or [{}], "rule.interval")


def rule_cron(at: Parameters) -> str:
    """Return the cron expression of a rule. Raises InvalidInputError.

    >>> rule_cron(Parameters({"field": "weeks", "triggerAtDay": [1, 3], "triggerAtHour": 9, "triggerAtMinute": 15}))
    '15 9 * * 1,3'
    """
    return _RULES[at.one_of("field", tuple(_RULES), "days")](at)


def time_entries(parameters: Mapping[str, Any]) -> Entries:
    """Yield the times of n8n's older cron trigger. Raises InvalidInputError without any: it would never fire."""
    times = Parameters(parameters).members("triggerTimes").get("item")
    if not times:
        raise InvalidInputError("parameters.triggerTimes.item", "must have a time at least", times)
    yield from _numbered(times, "triggerTimes.item")


def time_cron(at: Parameters) -> str:
    """Return the cron expression of a time of the older cron trigger. Raises InvalidInputError.

    >>> time_cron(Parameters({"mode": "everyX", "unit": "minutes", "value": 10}))
    '*/10 * * * *'
    """
    return _TIMES[at.one_of("mode", tuple(_TIMES), "everyDay")](at)


def plain_entries(parameters: Mapping[str, Any]) -> Entries:
    """Yield the only rule of n8n's older interval trigger."""
    yield Parameters(parameters)


def plain_cron(at: Parameters) -> str:
    """Return the cron expression of the older interval trigger. Raises InvalidInputError.

    >>> plain_cron(Parameters({"interval": 2, "unit": "hours"}))
    '0 */2 * * *'
    """
    return _every(at, "interval", at.one_of("unit", ("seconds", "minutes", "hours"), "seconds"), 1)


def _numbered(entries: object, path: str) -> Entries:
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise InvalidInputError(f"parameters.{path}", "must be a list of objects", entries)
    for index, entry in enumerate(entries):
        yield Parameters(entry, field=f"parameters.{path}[{index}]")


def _every(at: Parameters, path: str, unit: str, default: int) -> str:
    """Every few minutes or hours; seconds only where they are whole minutes."""
    if unit == "hours":
        return f"{_minute(at, 'triggerAtMinute')} {_step(at.whole(path, default, least=1, most=23))} * * *"
    if unit == "minutes":
        return f"{_step(at.whole(path, default, least=1, most=59))} * * * *"
    seconds = at.whole(path, default, least=1)
    if seconds % 60 or seconds >= 3600:
        rule = "must be whole minutes below an hour, since a schedule fires once a minute at most: use minutes or hours"
        raise InvalidInputError(f"{at.field}.{path}", rule, seconds)
    return f"{_step(seconds // 60)} * * * *"


def _step(count: int) -> str:
    return "*" if count == 1 else f"*/{count}"


def _minute(at: Parameters, path: str = "triggerAtMinute") -> int:
    return at.whole(path, 0, most=59)


def _clock(at: Parameters) -> str:
    return f"{_minute(at)} {at.whole('triggerAtHour', 0, most=23)}"


def _days(at: Parameters) -> str:
    return f"{_clock(at)} {_step(at.whole('daysInterval', 1, least=1, most=31))} * *"


def _weeks(at: Parameters) -> str:
    if at.whole("weeksInterval", 1, least=1) != 1:
        rule = "must be 1, since cron counts no weeks: fire every week, and look at $now.weekNumber with an if node"
        raise InvalidInputError(f"{at.field}.weeksInterval", rule, at.get("weeksInterval"))
    days = at.get("triggerAtDay", [0])
    if not isinstance(days, list) or not all(isinstance(day, int) and 0 <= day <= 7 for day in days):
        raise InvalidInputError(f"{at.field}.triggerAtDay", "must be numbers from 0 (Sunday) to 6 (Saturday)", days)
    return f"{_clock(at)} * * {','.join(map(str, days)) or '*'}"


def _months(at: Parameters) -> str:
    day = at.whole("triggerAtDayOfMonth", 1, least=1, most=31)
    return f"{_clock(at)} {day} {_step(at.whole('monthsInterval', 1, least=1, most=12))} *"


def _custom(at: Parameters, path: str) -> str:
    """Five fields as they are; six, as n8n has them with seconds first, where the seconds are 0."""
    text = at.text(path)
    parts = text.split()
    if len(parts) == 6 and parts[0] == "0":
        parts = parts[1:]
    if len(parts) != 5 or text.startswith("="):
        rule = (
            "must be a cron expression of five fields (minute, hour, day of month, month, day of week), written out; "
            "a sixth one in front, for seconds, can only be 0"
        )
        raise InvalidInputError(f"{at.field}.{path}", rule, text)
    return " ".join(parts)


def _old_clock(at: Parameters) -> str:
    return f"{_minute(at, 'minute')} {at.whole('hour', 14, most=23)}"


_RULES: Mapping[str, Callable[[Parameters], str]] = {
    "seconds": lambda at: _every(at, "secondsInterval", "seconds", 30),
    "minutes": lambda at: _every(at, "minutesInterval", "minutes", 5),
    "hours": lambda at: _every(at, "hoursInterval", "hours", 1),
    "days": _days,
    "weeks": _weeks,
    "months": _months,
    "cronExpression": lambda at: _custom(at, "expression"),
}
_TIMES: Mapping[str, Callable[[Parameters], str]] = {
    "everyMinute": lambda at: "* * * * *",
    "everyHour": lambda at: f"{_minute(at, 'minute')} * * * *",
    "everyX": lambda at: _every(at, "value", at.one_of("unit", ("minutes", "hours"), "hours"), 2),
    "everyDay": lambda at: f"{_old_clock(at)} * * *",
    "everyWeek": lambda at: f"{_old_clock(at)} * * {at.whole('weekday', 1, most=7)}",
    "everyMonth": lambda at: f"{_old_clock(at)} {at.whole('dayOfMonth', 1, least=1, most=31)} * *",
    "custom": lambda at: _custom(at, "cronExpression"),
}
