"""Memory: what is measured of work that ended lately."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import InvalidInputError
from headrace.apps.memory.rules.meter import Meter, Pace, quantile


def test_latency_throughput_and_errors_are_of_the_window() -> None:
    """Two calls at once of 4 s and 2 s, one failed: its messages do not count, its time does."""
    meter = Meter(window=60)
    meter.add(4.0, seconds=4.0, items=40)
    meter.add(4.0, seconds=2.0, items=20, failed=True)
    pace = meter.pace(now=4.0)
    assert (pace.calls, pace.errors, pace.error_rate) == (2, 1, 0.5)
    assert (pace.latency_ms, pace.throughput) == (3_000.0, 10.0)
    assert (pace.p50_ms, pace.p99_ms) == (2_000.0, 4_000.0)


def test_nothing_measured_is_said_as_such() -> None:
    """Before the first call, and once the last has left the window."""
    meter = Meter(window=10)
    assert meter.pace(0.0) == Pace()
    meter.add(1.0, seconds=0.5)
    assert meter.pace(10.9).calls == 1
    assert meter.pace(11.0) == Pace()
    assert Pace().error_rate == 0.0


def test_idle_time_counts_and_a_short_time_is_a_second() -> None:
    """Throughput is over the time since the first call began, at least a second, at most the window."""
    meter = Meter(window=60)
    meter.add(0.1, seconds=0.1, items=30)
    assert meter.pace(0.1).throughput == 30.0
    assert meter.pace(30.0).throughput == 1.0
    meter.add(59.0, seconds=59.0, items=30)
    assert meter.pace(60.05).throughput == 1.0


def test_it_is_bounded() -> None:
    """The oldest give way; a clock that went back makes no negative time."""
    meter = Meter(window=60, most=2)
    for number in range(5):
        meter.add(number, seconds=-1.0 if number == 4 else 1.0)
    pace = meter.pace(4.0)
    assert (pace.calls, pace.latency_ms) == (2, 500.0)


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=300), share=st.floats(0.01, 1.0))
def test_a_quantile_has_its_share_below_it(values: list[float], share: float) -> None:
    """At least the share is not above it, and it is one of the values."""
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered) - 1e-6


@pytest.mark.parametrize(("window", "most"), [(0.0, 5), (-1.0, 5), (60.0, 0)])
def test_a_meter_without_room_is_refused(window: float, most: int) -> None:
    """Bounds that leave nothing are named."""
    with pytest.raises(InvalidInputError, match="window and most"):
        Meter(window, most)
