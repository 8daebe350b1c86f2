"""Alerts: a figure of a kind of work that is above its mark, told when that begins and when it is over.

They are written to the log and to the feed `memory.alerts`, which others may follow; /metrics has `memory_alert`. Which
alerts ring is read back from the feed, by whoever looks next. One that rings for longer than feeds are kept is told
anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace import App, FeedEntry
    from headrace.apps.memory.figures import Figures, KindFigures
    from headrace.memory_settings import MemorySettings

LOG = logging.getLogger("headrace.memory")
#: The feed of alerts, and the types of its entries.
FEED, RAISED, OVER = "memory.alerts", "raised", "over"
#: Entries that are read back: there are a dozen figures.
MOST_READ = 1_000


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


async def tell_alerts(app: App, figures: Figures) -> list[Alert]:
    """Tell of alerts that began and that are over, and return those that ring. Raises StoreUnavailableError.

    However many look, each beginning and each end is once in the feed: what rings is read from it, and two who look at
    the same moment say the same under one key.
    """
    feed = app.feed(FEED)
    last = await feed.end()
    ringing = _ringing(await feed.read(max(0, last - MOST_READ), MOST_READ))
    alerts = {(alert.kind, alert.figure): alert for alert in alerts_of(figures, app.settings.memory)}
    for place, alert in alerts.items():
        if place not in ringing:
            await feed.append(RAISED, asdict(alert), key=_key(alert, last))
            LOG.warning("alert: %s", alert, extra=asdict(alert))
    for place, alert in ringing.items():
        if place not in alerts:
            await feed.append(OVER, asdict(alert), key=_key(alert, last))
            LOG.info("alert is over: %s of %s", alert.figure, alert.kind)
    return list(alerts.values())


def _ringing(entries: Iterable[FeedEntry]) -> dict[tuple[str, str], Alert]:
    """Return the alerts that entries leave ringing."""
    ringing: dict[tuple[str, str], Alert] = {}
    for entry in entries:
        alert = Alert(**entry.data)
        if entry.type == RAISED:
            ringing[alert.kind, alert.figure] = alert
        else:
            ringing.pop((alert.kind, alert.figure), None)
    return ringing


def _key(alert: Alert, last: int) -> str:
    """Return what an entry is known by: the same of all who saw the feed end at `last`."""
    return f"{alert.kind}/{alert.figure}/{last}"
