"""The arithmetic of cron: the fire times of a rule, and what a late scheduler does about those that passed.

`cronsim` reads expressions and finds their wall-clock times; how these become instants where clocks are changed is
decided here, as Debian's cron does (docs/explanation/cron.md): a rule whose minute and hour are given fires once for
each of its wall-clock times, right after the gap where that time is skipped, and the first time where it comes twice;
one with `*` in the minute or hour fires at every instant at which the clocks of the zone show such a time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from headrace.model.errors import InvalidInputError
from headrace.model.schedule import MAX_CATCH_UP, ON_TIME, CatchUp, CronRule, find_zone

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
#: Whether a rule ever fires does not depend on when it is asked: the search begins here and ends 50 years later.
_EPOCH = datetime(2024, 1, 1)
#: Where the latest fire times are looked for first; enlarged by the factor until enough are found.
_WINDOW = timedelta(hours=2)
_WIDER = 4

#: Name, how many values there are, and which.
_FIELDS = (
    ("minute", 60, "must be 0 to 59"),
    ("hour", 24, "must be 0 to 23"),
    ("day of month", 31, "must be 1 to 31, L (the last day) or LW (the last weekday)"),
    ("month", 12, "must be 1 to 12 or JAN to DEC"),
    ("day of week", 7, "must be 0 to 7 or SUN to SAT, 5L (the last Friday) or MON#1 (the first Monday)"),
)
_STEP = re.compile(r"/([0-9]+)")


class Timetable:
    """The fire times of one rule.

    >>> nightly = Timetable(CronRule("30 2 * * *", "Europe/Berlin"))
    >>> nightly.next_after(datetime(2026, 3, 29, 0, 0, tzinfo=UTC)).isoformat()  # 02:30 is skipped that night
    '2026-03-29T01:00:00+00:00'
    """

    def __init__(self, rule: CronRule) -> None:
        """Check the rule. Raises InvalidInputError naming the field that is wrong, or a rule that never fires."""
        rule.check()
        self._expression = " ".join(rule.expression.split())
        self._zone = find_zone(rule.tz)
        parts = self._expression.split()
        for index in range(len(_FIELDS)):
            _check_field(parts, index)
        self._at_given_times = not parts[0].startswith("*") and not parts[1].startswith("*")
        try:
            next(CronSim(self._expression, _EPOCH))
        except (CronSimError, StopIteration):
            # Each field is right by itself, so it is their combination, such as 31 February.
            raise InvalidInputError("cron", "never fires: no such day comes", rule.expression) from None

    def next_after(self, instant: datetime) -> datetime:
        """Return the first fire time after an aware instant, in UTC."""
        instant = instant.astimezone(UTC)
        return self._next_given(instant) if self._at_given_times else self._next_shown(instant)

    def latest(self, after: datetime, until: datetime, *, limit: int = MAX_CATCH_UP) -> list[datetime]:
        """Return the last `limit` fire times after `after`, up to and including `until`, in their order."""
        window = _WINDOW
        while True:
            start = until - min(window, until - after)
            times = deque(self._between(start, until), maxlen=limit)
            if start == after or len(times) == limit:
                return list(times)
            window *= _WIDER

    def upcoming(self, after: datetime, count: int) -> list[datetime]:
        """Return the next `count` fire times after an instant."""
        times: list[datetime] = []
        while len(times) < count:
            times.append(self.next_after(times[-1] if times else after))
        return times

    def _between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        at = self.next_after(after)
        while at <= until:
            yield at
            at = self.next_after(at)

    def _next_given(self, instant: datetime) -> datetime:
        for wall in CronSim(self._expression, self._wall(instant)):
            at = self._first_instant(wall)
            # Earlier where this wall-clock time comes again: it was fired for the first time it came.
            if at > instant:
                return at
        raise AssertionError("a rule that fired once fires again")

    def _first_instant(self, wall: datetime) -> datetime:
        """Return when the clocks show a time for the first time, or, where they skip it, when they have skipped it."""
        while True:
            at = wall.replace(tzinfo=self._zone).astimezone(UTC)
            if self._wall(at) == wall:
                return at
            wall += _MINUTE

    def _next_shown(self, instant: datetime) -> datetime:
        at = instant.replace(second=0, microsecond=0) + _MINUTE
        while True:
            wall = self._wall(at)
            wanted = next(CronSim(self._expression, wall - _SECOND))
            at, arrived = self._travel(at, wanted - wall)
            if arrived:
                return at

    def _travel(self, start: datetime, distance: timedelta) -> tuple[datetime, bool]:
        """Go on in time, but not past a change of the clocks; return where that is and whether it is the whole way.

        As long as no clock is changed, instants and wall-clock times go on alike.
        """
        offset, at, end = self._offset(start), start, start + distance
        while at < end:
            # In steps that no zone changes its clocks twice in.
            further = min(at + _DAY, end)
            if self._offset(further) != offset:
                return self._change(at, further), False
            at = further
        return end, True

    def _change(self, before: datetime, after: datetime) -> datetime:
        """Return the first minute after which the clocks are changed, between an instant before and one after it."""
        offset, minutes = self._offset(before), int((after - before) / _MINUTE)
        low, high = 0, minutes
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(before + middle * _MINUTE) == offset:
                low = middle
            else:
                high = middle
        return before + high * _MINUTE

    def _wall(self, instant: datetime) -> datetime:
        return instant.astimezone(self._zone).replace(tzinfo=None, fold=0)

    def _offset(self, instant: datetime) -> timedelta | None:
        return instant.astimezone(self._zone).utcoffset()


def _check_field(parts: list[str], index: int) -> None:
    """Raise InvalidInputError unless the field is right when it stands alone."""
    name, count, rule = _FIELDS[index]
    alone = ["*"] * len(_FIELDS)
    alone[index] = parts[index]
    try:
        CronSim(" ".join(alone), _EPOCH)
    except (CronSimError, ValueError):
        form = f"{rule}, *, or ranges, steps and lists of these (1-5, */15, 1,3)"
        raise InvalidInputError(f"cron ({name})", form, parts[index]) from None
    if any(int(step) > count for step in _STEP.findall(parts[index])):
        raise InvalidInputError(f"cron ({name})", f"must have steps of at most {count}", parts[index])


@lru_cache(maxsize=1_000)
def timetable(rule: CronRule) -> Timetable:
    """Return the timetable of a rule, checked once. Raises InvalidInputError."""
    return Timetable(rule)


def check_rule(cron: str, *, tz: str = "UTC", catch_up: CatchUp | str = CatchUp.SKIP) -> CronRule:
    """Return a rule that is right in every field and fires. Raises InvalidInputError naming field, rule and value.

    >>> check_rule("0 0 31 2 *")
    Traceback (most recent call last):
    headrace.model.errors.InvalidInputError: cron never fires: no such day comes, got '0 0 31 2 *'
    """
    rule = CronRule(cron, tz, CatchUp.parse(catch_up))
    timetable(rule)
    return rule


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about a schedule now: fire for these times, leave out so many, and go on at `next_at`.

    `skipped` counts what was looked at: after a long absence there may have been more.
    """

    fires: tuple[datetime, ...]
    skipped: int
    after_at: datetime
    next_at: datetime


def plan(rule: CronRule, *, after_at: datetime, now: datetime) -> Plan:
    """Return what to do about the fire times after `after_at` up to `now`, by the catch-up policy.

    An `after_at` that lies ahead comes from a clock that was ahead: planning goes on from `now`, and what was fired
    before is not fired again because the store knows each fire time.

    >>> at = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    >>> plan(CronRule("0 * * * *", catch_up=CatchUp.ONE), after_at=at, now=at + timedelta(hours=3)).skipped
    2
    """
    table, after_at = timetable(rule), min(after_at, now)
    times = table.latest(after_at, now)
    match rule.catch_up:
        case CatchUp.ALL:
            fires = times
        case CatchUp.ONE:
            fires = times[-1:]
        case _:
            fires = [at for at in times if now - at < ON_TIME]
    done = times[-1] if times else after_at
    return Plan(tuple(fires), len(times) - len(fires), done, table.next_after(done))
