"""Percentiles by nearest rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.ranks import percentile


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.07, 7), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_percentiles_are_values_that_were_measured(share: float, expected: int) -> None:
    """The p-th percentile is the smallest value that so many do not exceed."""
    assert percentile(range(100, 0, -1), share) == expected
    assert percentile([2, 1], 0.5) == 1, "the median of two is the first"


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=300), share=st.floats(0.01, 1.0))
def test_a_percentile_has_its_share_below_it(values: list[float], share: float) -> None:
    """At least the share is not above it, and it is one of the values."""
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


def test_of_no_values_there_is_none() -> None:
    """It is told."""
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)
