"""Alerts: a figure of a kind of work that is above its mark, told when that begins and when it is over.

They are written to the log and to the feed `memory.alerts`, which others may follow; /metrics has `memory_alert`.
Whoever looks remembers what rings. After a restart an alert that goes on is told once more: never too few.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace import App
    from headrace.apps.memory.figures import Figures, KindFigures
    from headrace.memory_settings import MemorySettings

LOG = logging.getLogger("headrace.memory")
#: The feed of alerts, and the types of its entries.
FEED, RAISED, OVER = "memory.alerts", "raised", "over"


@dataclass(frozen=True, slots=True)
class Alert:
    """One figure above its mark."""

    kind: str
    #: "depth", "error_rate" or "latency"
    figure: str
    #: jobs, a share of 0 to 1, or milliseconds
    value: float
    mark: float

    def __str__(self) -> str:
        return f"{self.figure} of {self.kind} is {self.value:g}, above {self.mark:g}"


def alerts_of(figures: Figures, memory: MemorySettings) -> list[Alert]:
    """Return what is above the marks of `[memory]` `alert_depth`, `alert_error_rate` and `alert_latency`."""
    return [alert for one in figures.kinds for alert in _alerts_of(one, memory)]


def _alerts_of(one: KindFigures, memory: MemorySettings) -> Iterator[Alert]:
    latency = memory.alert_latency.total_seconds() * 1_000
    if one.queue_depth >= memory.alert_depth:
        yield Alert(one.kind, "depth", one.queue_depth, memory.alert_depth)
    if one.error_rate > memory.alert_error_rate:
        yield Alert(one.kind, "error_rate", one.error_rate, memory.alert_error_rate)
    if one.avg_latency_ms is not None and one.avg_latency_ms > latency:
        yield Alert(one.kind, "latency", one.avg_latency_ms, latency)


class AlertBook:
    """Remembers what rings, for whoever looks at the figures again and again."""

    def __init__(self) -> None:
        self._ringing: dict[tuple[str, str], Alert] = {}

    async def look(self, app: App, figures: Figures) -> list[Alert]:
        """Tell of alerts that began and that are over, and return those that ring. Raises StoreUnavailableError.

        What could not be told is told at the next look.
        """
        alerts = {(alert.kind, alert.figure): alert for alert in alerts_of(figures, app.settings.memory)}
        for place, alert in alerts.items():
            if place not in self._ringing:
                await app.feed(FEED).append(RAISED, asdict(alert))
                LOG.warning("alert: %s", alert, extra=asdict(alert))
                self._ringing[place] = alert
        for place in [place for place in self._ringing if place not in alerts]:
            await app.feed(FEED).append(OVER, asdict(self._ringing[place]))
            LOG.info("alert is over: %s of %s", place[1], place[0])
            del self._ringing[place]
        return list(alerts.values())
