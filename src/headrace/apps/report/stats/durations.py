"""How long cases took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Case
from headrace.apps.report.stats.values import Measure

#: Where one bin ends and the next begins, in seconds, and the names of the bins.
EDGES = (1.0, 10.0, 60.0, 300.0, 1800.0, 7200.0)
NAMES = ("< 1 s", "1–10 s", "10–60 s", "1–5 min", "5–30 min", "30–120 min", "≥ 2 h")


class Bin(Value):
    """How many cases took so long."""

    name: str
    count: int


class Durations(Value):
    """Durations of the cases that have one. `missing` counts the others; they are in no figure."""

    of: int
    missing: int
    bins: tuple[Bin, ...]
    total_seconds: Measure
    median_seconds: Measure
    #: 95 of 100 cases took at most as long.
    p95_seconds: Measure
    longest_seconds: Measure


def durations_of(cases: Iterable[Case]) -> Durations:
    """Return the durations of cases; one that is negative or no number counts as missing."""
    known, missing = [], 0
    for case in cases:
        seconds = case.duration_seconds
        if seconds is None or not math.isfinite(seconds) or seconds < 0:
            missing += 1
        else:
            known.append(seconds)
    known.sort()

    def measure(value: float) -> Measure:
        return Measure(value=round(value, 3) if known else None, of=len(known), missing=missing)

    return Durations(
        of=len(known),
        missing=missing,
        bins=_bins(known),
        total_seconds=measure(math.fsum(known)),
        median_seconds=measure(statistics.median(known) if known else 0),
        p95_seconds=measure(known[math.ceil(0.95 * len(known)) - 1] if known else 0),
        longest_seconds=measure(known[-1] if known else 0),
    )


def _bins(known: list[float]) -> tuple[Bin, ...]:
    counts = [0] * len(NAMES)
    for seconds in known:
        counts[sum(seconds >= edge for edge in EDGES)] += 1
    return tuple(Bin(name=name, count=count) for name, count in zip(NAMES, counts, strict=True))
