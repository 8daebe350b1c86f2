"""The fire times of cron rules, over two years and where clocks are changed."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from headrace.engine.cron import Timetable, plan
from headrace.model.schedule import MAX_CATCH_UP, CatchUp, CronRule
from tests.unit import cron_oracle
from tests.unit.cron_oracle import SPAN, ZONES

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

#: Minute and hour are given.
GIVEN = ("30 2 * * *", "0 0 * * *", "0,15,30,45 1-3 * * 0", "5 0-23/6 1,15 * 1")
#: A star in one of them.
SHOWN = ("7 */5 * * *", "*/10 2 * * *", "*/15 1-3 * 3,4,10,11 *", "45 * 26-31 3,10 0")


def fire_times(expression: str, tz: str) -> list[datetime]:
    """Return the fire times of the span, one after another as a scheduler finds them."""
    table, times = Timetable(CronRule(expression, tz)), []
    at = table.next_after(SPAN[0] - MINUTE)
    while at < SPAN[1]:
        times.append(at)
        at = table.next_after(at)
    return times


@pytest.mark.parametrize("tz", ZONES)
def test_each_given_time_comes_exactly_once_in_two_years(tz: str) -> None:
    """In every zone a given time fires once a day: right after a gap that skips it, the first time where it repeats."""
    for expression in GIVEN:
        assert fire_times(expression, tz) == cron_oracle.given(expression, tz), expression


@pytest.mark.parametrize("tz", ZONES)
def test_each_shown_time_comes_exactly_as_often_as_clocks_show_it(tz: str) -> None:
    """With a star in minute or hour a rule fires whenever the clocks of the zone show such a time, and never else."""
    for expression in SHOWN:
        assert fire_times(expression, tz) == cron_oracle.shown(expression, tz), expression


@pytest.mark.parametrize("tz", ZONES)
@pytest.mark.parametrize("expression", ["30 2 * * *", "*/20 1-3 * * *"])
def test_planning_may_begin_anywhere(expression: str, tz: str) -> None:
    """From any second around a change of clocks the next fire time is the same as on the way from far before."""
    table, times = Timetable(CronRule(expression, tz)), fire_times(expression, tz)
    for first, second in itertools.pairwise(times):
        if second - first in (timedelta(days=1), timedelta(minutes=20)):
            continue
        middle, last = first + (second - first) / 2, second - timedelta.resolution
        for begin in (first, first + timedelta(seconds=29), middle, last):
            assert table.next_after(begin) == second


def test_a_gap_of_a_whole_day() -> None:
    """Samoa had no 30 December 2011: what was due on it fires as the next day begins."""
    table = Timetable(CronRule("0 12 30 12 *", "Pacific/Apia"))
    assert table.next_after(datetime(2011, 12, 1, tzinfo=UTC)) == datetime(2011, 12, 30, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "after", "at"),
    [
        ("0 0 29 2 *", "2096-03-01", "2104-02-29"),  # 2100 is no leap year
        ("0 0 L * *", "2026-02-01", "2026-02-28"),
        ("0 0 * * 5L", "2026-11-01", "2026-11-27"),
        ("0 0 * * MON#1", "2026-11-03", "2026-12-07"),
        ("0 0 LW * *", "2026-02-01", "2026-02-27"),
        ("0 0 13 * 5", "2026-11-13", "2026-11-20"),  # day of month or day of week
        ("0 0 * jan sun", "2026-01-01", "2026-01-04"),
        ("0 0 * * 7", "2026-01-01", "2026-01-04"),
    ],
)
def test_what_an_expression_means(expression: str, after: str, at: str) -> None:
    """Leap days, last days, n-th weekdays, names, and Debian's rule for two given days."""
    table = Timetable(CronRule(expression))
    assert table.next_after(_utc(after)) == _utc(at)


def _utc(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("catch_up", "late", "fires", "skipped"),
    [
        (CatchUp.SKIP, timedelta(), [0], 0),
        (CatchUp.SKIP, timedelta(seconds=59), [0], 0),
        (CatchUp.SKIP, timedelta(seconds=60), [], 1),
        (CatchUp.SKIP, 3 * HOUR, [3], 3),
        (CatchUp.SKIP, 3 * HOUR + 2 * MINUTE, [], 4),
        (CatchUp.ONE, timedelta(), [0], 0),
        (CatchUp.ONE, 3 * HOUR + 2 * MINUTE, [3], 3),
        (CatchUp.ALL, timedelta(), [0], 0),
        (CatchUp.ALL, 3 * HOUR + 2 * MINUTE, [0, 1, 2, 3], 0),
    ],
)
def test_what_was_missed_is_made_up_for_by_the_policy(
    catch_up: CatchUp, late: timedelta, fires: list[int], skipped: int
) -> None:
    """Left out unless on time, one for all, or each; the schedule then goes on after the last of them."""
    found = plan(CronRule("0 * * * *", catch_up=catch_up), after_at=NOON - HOUR, now=NOON + late)
    assert [(at - NOON) / HOUR for at in found.fires] == fires
    assert found.skipped == skipped
    assert found.after_at <= NOON + late < found.next_at == found.after_at + HOUR


def test_nothing_is_made_up_for_beyond_a_hundred() -> None:
    """After ten years of silence a rule of every minute makes up for the latest hundred, and finds them at once."""
    rule, now = CronRule("* * * * *", catch_up=CatchUp.ALL), NOON.replace(year=2036)
    found = plan(rule, after_at=NOON, now=now)
    assert found.fires == tuple(now - number * MINUTE for number in reversed(range(MAX_CATCH_UP)))
    assert (found.after_at, found.next_at) == (now, now + MINUTE)


@pytest.mark.parametrize("catch_up", CatchUp)
def test_a_clock_that_went_back_is_planned_from_where_it_is(catch_up: CatchUp) -> None:
    """What a clock ten years ahead left behind does not silence a schedule, and makes it fire nothing now."""
    found = plan(CronRule("0 * * * *", catch_up=catch_up), after_at=NOON.replace(year=2036), now=NOON)
    assert (found.fires, found.after_at, found.next_at) == ((), NOON, NOON + HOUR)
