"""Percentiles by nearest rank: values that are there, none between two."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar


class Ordered(Protocol):
    """What can be put in order."""

    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=Ordered)


def percentile(values: Iterable[T], share: float) -> T:
    """Return the smallest value that at least `share` of the values do not exceed. Raises ValueError of none.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 0.5), percentile([4.0, 1.0, 3.0, 2.0], 0.99), percentile(range(1, 101), 0.07)
    (2.0, 4.0, 7)
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values: nothing has a rank")
    # Shares are rarely exact: 0.07 of 100 is a little more than 7.
    return ordered[max(math.ceil(round(share * len(ordered), 9)), 1) - 1]
