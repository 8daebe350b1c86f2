"""What a worker counts of itself; sent with each heartbeat and shown by `headrace workers`."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Telemetry:
    """Counters and gauges of one process, by the names of `docs/reference/metrics.md`.

    >>> telemetry = Telemetry(); telemetry.count("headrace.jobs.claim", 3); telemetry.snapshot()
    {'headrace.jobs.claim': 3}
    """

    def __init__(self) -> None:
        self._values: Counter[str] = Counter()

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self._values[name] += by

    def gauge(self, name: str, value: int) -> None:
        """Set a gauge."""
        self._values[name] = value

    def value(self, name: str) -> int:
        """Return one value; 0 when nothing was counted."""
        return self._values[name]

    def snapshot(self) -> dict[str, Any]:
        """Return all values."""
        return dict(self._values)
