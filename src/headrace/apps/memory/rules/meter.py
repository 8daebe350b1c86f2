"""How fast work went lately: latency, throughput and errors of what ended within a window. The time is passed in."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from headrace import InvalidInputError

#: Seconds that are looked back on, and how much that ended in them is kept at most.
WINDOW, MOST = 60.0, 4_096


@dataclass(frozen=True, slots=True)
class Sample:
    """One piece of work that ended."""

    #: on the clock of whoever asks, in seconds
    ended: float
    seconds: float
    #: what it was about, such as messages
    items: int
    failed: bool


@dataclass(frozen=True, slots=True)
class Pace:
    """What ended within the window. None: nothing did."""

    calls: int = 0
    errors: int = 0
    #: items per second
    throughput: float | None = None
    latency_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None

    @property
    def error_rate(self) -> float:
        """The share that failed, 0 to 1."""
        return self.errors / self.calls if self.calls else 0.0


class Meter:
    """A sliding window over work that ended; for one event loop.

    >>> meter = Meter()
    >>> meter.add(10.0, seconds=2.0, items=40)
    >>> pace = meter.pace(now=10.0)
    >>> pace.latency_ms, pace.throughput
    (2000.0, 20.0)
    >>> meter.pace(now=500.0).latency_ms is None
    True
    """

    def __init__(self, window: float = WINDOW, most: int = MOST) -> None:
        if not window > 0 or most < 1:
            raise InvalidInputError("window and most", "must be above zero", (window, most))
        self._window = window
        self._samples: deque[Sample] = deque(maxlen=most)

    def add(self, now: float, *, seconds: float, items: int = 1, failed: bool = False) -> None:
        """Count work that ended at `now` (seconds of any clock that only goes forward) after so many seconds."""
        self._samples.append(Sample(now, max(seconds, 0.0), items, failed))

    def pace(self, now: float) -> Pace:
        """Return what ended within the window before `now`."""
        while self._samples and self._samples[0].ended <= now - self._window:
            self._samples.popleft()
        if not self._samples:
            return Pace()
        times = sorted(sample.seconds * 1_000 for sample in self._samples)
        begun = min(sample.ended - sample.seconds for sample in self._samples)
        # The window is full only when work has gone on so long; at least a second, lest one quick call looks like many.
        span = min(max(now - begun, 1.0), self._window)
        return Pace(
            calls=len(times),
            errors=sum(sample.failed for sample in self._samples),
            throughput=sum(sample.items for sample in self._samples if not sample.failed) / span,
            latency_ms=sum(times) / len(times),
            p50_ms=quantile(times, 0.5),
            p99_ms=quantile(times, 0.99),
        )


def quantile(ordered: list[float], share: float) -> float:
    """Return the value below or at which `share` of some ordered values lie, by nearest rank.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5), quantile([1.0], 0.99)
    (2.0, 1.0)
    """
    place = -int(-share * len(ordered) // 1)  # rounded up
    return ordered[min(max(place, 1), len(ordered)) - 1]
