"""What a worker counts of itself; sent with each heartbeat and shown by `headrace workers`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

#: The table of elastic queues: size, bounds and backlog by queue.
SLOTS = "headrace.slots.queues"


class Telemetry:
    """Counters and gauges of one process, by the names of `docs/reference/metrics.md`.

    >>> telemetry = Telemetry(); telemetry.count("headrace.jobs.claim", 3); telemetry.snapshot()
    {'headrace.jobs.claim': 3}
    """

    def __init__(self) -> None:
        self._values: Counter[str] = Counter()
        self._tables: dict[str, Mapping[str, Any]] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self._values[name] += by

    def gauge(self, name: str, value: int) -> None:
        """Set a gauge."""
        self._values[name] = value

    def table(self, name: str, rows: Mapping[str, Any]) -> None:
        """Set figures that are several, such as those of each queue; no rows: there are none any more."""
        tables = {key: table for key, table in self._tables.items() if key != name}
        # Another thread may be reading.
        self._tables = tables | {name: rows} if rows else tables

    def value(self, name: str) -> int:
        """Return one value; 0 when nothing was counted."""
        return self._values[name]

    def snapshot(self) -> dict[str, Any]:
        """Return all values."""
        return {**self._values, **self._tables}
