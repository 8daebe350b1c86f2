"""Memory: what is measured of calls that ended lately."""

from __future__ import annotations

import pytest

from headrace.apps.memory.rules.pace import WINDOW, Call, Pace, pace_of


def test_nothing_measured_is_said_as_such() -> None:
    """Before the first call, and once the last has left the window."""
    assert pace_of([]) == Pace(None, None)


@pytest.mark.parametrize(
    ("calls", "throughput", "latency"),
    [
        ([Call(0.0, 4.0, 40), Call(0.0, 2.0, 20)], 15.0, 3_000.0),
        ([Call(0.0, 0.1, 30)], 30.0, 100.0),
        ([Call(29.9, 0.1, 30)], 1.0, 100.0),
        ([Call(1.0, 200.0, 60)], 1.0, 200_000.0),
    ],
    ids=["at once", "a short time is a second", "idle time counts", "no more than the window"],
)
def test_throughput_is_over_the_time_since_the_first_began(
    calls: list[Call], throughput: float, latency: float
) -> None:
    """And latency is the mean."""
    found = pace_of(calls)
    assert (found.throughput, found.latency_ms) == pytest.approx((throughput, latency))
    assert WINDOW == 60.0
