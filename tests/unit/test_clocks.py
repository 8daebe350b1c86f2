"""The clock of the machine, and the one of tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headrace.clock import SystemClock
from headrace.model.errors import InvalidInputError
from headrace.testing.clock import FakeClock


def test_the_system_clock_tells_utc() -> None:
    """The wall clock is aware, in UTC, and that of the machine."""
    now = SystemClock().now()

    assert now.utcoffset() == timedelta()
    assert abs(now.timestamp() - time.time()) < 5


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux counts a suspended machine")
def test_the_monotonic_clock_counts_a_suspended_machine() -> None:
    """It follows the clock since boot, which runs on in suspend, and never goes back."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    read = [SystemClock().monotonic() for _ in range(100)]

    assert before <= read[0]
    assert read == sorted(read)
    assert read[-1] <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_a_fake_clock_moves_when_told() -> None:
    """It stands still; advancing moves wall and monotonic clock alike, in UTC whatever zone it started in."""
    clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 3, 1, 10, tzinfo=UTC), 0.0)
    clock.advance(timedelta(seconds=90))

    assert (clock.now(), clock.monotonic()) == (datetime(2026, 3, 1, 10, 1, 30, tzinfo=UTC), 90.0)
    assert clock.now().tzinfo is UTC


def test_a_stepped_fake_clock_keeps_its_monotonic_time() -> None:
    """Setting the wall clock, forward or back, is a step that the monotonic clock does not see."""
    clock = FakeClock()
    clock.set_now(datetime(2020, 1, 1, tzinfo=UTC))

    assert (clock.now(), clock.monotonic()) == (datetime(2020, 1, 1, tzinfo=UTC), 0.0)


def test_a_fake_clock_refuses_nonsense() -> None:
    """A naive instant and a negative step are mistakes of the test."""
    with pytest.raises(InvalidInputError, match="now must be an aware instant"):
        FakeClock(datetime(2026, 1, 1))
    with pytest.raises(InvalidInputError, match="now must be an aware instant"):
        FakeClock().set_now(datetime(2026, 1, 1))
    with pytest.raises(InvalidInputError, match="step must not be negative"):
        FakeClock().advance(timedelta(seconds=-1))
