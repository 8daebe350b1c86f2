"""What this process measures of its calls of the model: the size of batches follows it."""

from __future__ import annotations

from time import monotonic

from headrace.apps.memory.rules.meter import Meter, Pace


class CallMeter:
    """A sliding window of one minute over the calls of one process, on its own clock.

    >>> meter = CallMeter()
    >>> meter.note(6_000, items=20)
    >>> meter.reading().latency_ms
    6000.0
    """

    def __init__(self) -> None:
        self._meter = Meter()

    def note(self, latency_ms: float, items: int = 1, *, failed: bool = False) -> None:
        """Count a call that ends now, about so many flushes."""
        self._meter.add(monotonic(), seconds=latency_ms / 1_000, items=items, failed=failed)

    def reading(self) -> Pace:
        """Return how calls of the last minute went."""
        return self._meter.pace(monotonic())


METER = CallMeter()
