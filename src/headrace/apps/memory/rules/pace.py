"""How fast calls of the model went lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Seconds that are looked back on.
WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """A call that ended within the window."""

    #: seconds since it ended
    ago: float
    seconds: float
    #: what it was about, such as flushes
    items: int


@dataclass(frozen=True, slots=True)
class Pace:
    """What ended within the window. None: nothing did."""

    #: items per second
    throughput: float | None = None
    latency_ms: float | None = None


def pace_of(calls: Sequence[Call]) -> Pace:
    """Return how calls went; throughput is over the time since the first of them began, at least a second.

    >>> pace_of([Call(ago=0.0, seconds=2.0, items=40), Call(ago=4.0, seconds=4.0, items=40)])
    Pace(throughput=10.0, latency_ms=3000.0)
    """
    if not calls:
        return Pace()
    # At least a second, lest one quick call looks like many.
    span = min(max(max(call.ago + call.seconds for call in calls), 1.0), WINDOW)
    latency = sum(call.seconds for call in calls) * 1_000 / len(calls)
    return Pace(sum(call.items for call in calls) / span, latency)
