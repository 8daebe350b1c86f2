"""Memory: what is measured of calls that ended lately."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.memory.rules.pace import WINDOW, Call, Pace, pace_of, quantile


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


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=300), share=st.floats(0.01, 1.0))
def test_a_quantile_has_its_share_below_it(values: list[float], share: float) -> None:
    """At least the share is not above it, and it is one of the values."""
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered) - 1e-6
