"""Fire times found the plain way: every minute of a span is looked at, and no arithmetic of the package is used."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

SPAN = (datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
#: One hour changes, half an hour, at midnight, two hours, around Ramadan; and one that changes nothing.
ZONES = (
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Antarctica/Troll",
    "Africa/Casablanca",
    "Asia/Kathmandu",
)
_QUARTER = timedelta(minutes=15)
_MINUTE = timedelta(minutes=1)
_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def fields(expression: str) -> list[set[int]]:
    """Return the numbers of each field: numbers, ranges, steps and lists only."""
    return [
        {number for part in text.split(",") for number in _part(part, *limits)}
        for text, limits in zip(expression.split(), _LIMITS, strict=True)
    ]


def _part(text: str, low: int, high: int) -> range:
    span, _, step = text.partition("/")
    first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
    return range(int(first), int(last or first) + 1, int(step or 1))


class Matcher:
    """Whether a wall-clock time is one of a rule."""

    def __init__(self, expression: str) -> None:
        self.minutes, self.hours, self.days, self.months, weekdays = fields(expression)
        self.weekdays = {number % 7 for number in weekdays}
        _, _, day, _, weekday = expression.split()
        self.both = day.startswith("*") or weekday.startswith("*")

        self._dates: dict[date, bool] = {}

    def hour(self, wall: datetime) -> bool:
        """Whether date and hour are right."""
        return wall.hour in self.hours and self._date(wall.date())

    def __call__(self, wall: datetime) -> bool:
        """Whether date and time are right."""
        return wall.minute in self.minutes and self.hour(wall)

    def _date(self, day: date) -> bool:
        if day not in self._dates:
            by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
            right = by_day and by_weekday if self.both else by_day or by_weekday
            self._dates[day] = right and day.month in self.months
        return self._dates[day]


def shown(expression: str, tz: str) -> list[datetime]:
    """Return every minute of the span at which the clocks of a zone show a time of the rule."""
    matches = Matcher(expression)
    return [at for first, wall in _quarters(tz) for at in _matching(first, wall, matches)]


def given(expression: str, tz: str) -> list[datetime]:
    """Return the first minute at which each wall-clock time of the rule has come, skipped ones included; each once."""
    matches = Matcher(expression)
    times: list[datetime] = []
    latest = next(_quarters(tz))[1]
    for first, wall in _quarters(tz):
        skipped = int((wall - latest) / _MINUTE)
        if any(matches(latest + number * _MINUTE) for number in range(skipped)):
            times.append(first)
        # What the clocks show again was there before.
        known = max(latest - wall, timedelta())
        times += [at for at in _matching(first, wall, matches) if at - first >= known and at not in times[-1:]]
        latest = max(latest, wall + _QUARTER)
    return times


def _matching(first: datetime, wall: datetime, matches: Matcher) -> list[datetime]:
    if not matches.hour(wall):
        return []
    return [first + number * _MINUTE for number in range(15) if wall.minute + number in matches.minutes]


@cache
def _walls(tz: str) -> list[datetime]:
    zone, count = ZoneInfo(tz), int((SPAN[1] - SPAN[0]) / _QUARTER)
    return [(SPAN[0] + number * _QUARTER).astimezone(zone).replace(tzinfo=None) for number in range(count)]


def _quarters(tz: str) -> Iterator[tuple[datetime, datetime]]:
    """Yield every quarter of an hour with what the clocks show; no zone changes them within one, or off its limits."""
    for number, wall in enumerate(_walls(tz)):
        yield SPAN[0] + number * _QUARTER, wall
