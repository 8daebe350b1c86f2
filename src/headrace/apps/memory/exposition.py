"""Figures of memory as Prometheus reads them, by the names of docs/reference/metrics.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from headrace import ConfigError, StoreVersionError
from headrace.apps.memory.alerts import alerts_of
from headrace.apps.memory.figures import Figures, memory_figures
from headrace.apps.memory.opening import KINDS, makes_memory

if TYPE_CHECKING:
    from headrace import App
    from headrace.memory_settings import MemorySettings

#: By figure of a kind, what it means.
KIND_METRICS = {
    "throughput_per_min": "Jobs that ended in the last minute.",
    "avg_latency_ms": "Mean time of the attempts that ended jobs lately.",
    "p50_latency_ms": "Time that half of them took at most.",
    "p99_latency_ms": "Time that 99 of 100 of them took at most.",
    "error_rate": "Share of attempts that failed, 0 to 1.",
    "queue_depth": "Jobs that wait, and changes that were not read yet.",
    "pool_size": "Slots of all live workers.",
}
#: By figure of the cache: its kind, and what it means.
CACHE_METRICS = {
    "hits": ("counter", "Look-ups that found something."),
    "misses": ("counter", "Look-ups that found nothing."),
    "evicted": ("counter", "Entries that gave way to others."),
    "hit_rate": ("gauge", "Share of look-ups that found something, 0 to 1."),
    "entries": ("gauge", "Entries that are kept."),
    "bytes": ("gauge", "Bytes of their keys and values."),
}
ALERT, ITEMS = "memory_alert", "memory_items"


def expose(figures: Figures, memory: MemorySettings) -> str:
    """Return figures in Prometheus's text format, and which of them are above the marks of `[memory]`."""
    return "\n".join([*_kinds(figures), *_alerts(figures, memory), *_cache(figures), *_items(figures)]) + "\n"


def _kinds(figures: Figures) -> Iterator[str]:
    for name, meaning in KIND_METRICS.items():
        yield from _head(f"memory_{name}", "gauge", meaning)
        for one in figures.kinds:
            value = getattr(one, name)
            if value is not None:
                yield f'memory_{name}{{kind="{one.kind}"}} {value:g}'


def _alerts(figures: Figures, memory: MemorySettings) -> Iterator[str]:
    yield from _head(ALERT, "gauge", "1 while a figure of a kind is above its mark.")
    ringing = {(alert.kind, alert.figure) for alert in alerts_of(figures, memory)}
    for one in figures.kinds:
        for figure in ("depth", "error_rate", "latency"):
            yield f'{ALERT}{{kind="{one.kind}",figure="{figure}"}} {int((one.kind, figure) in ringing)}'


def _cache(figures: Figures) -> Iterator[str]:
    if figures.cache is None:
        return
    for name, (kind, meaning) in CACHE_METRICS.items():
        full = f"memory_cache_{name}_total" if kind == "counter" else f"memory_cache_{name}"
        yield from _head(full, kind, meaning)
        yield f"{full} {getattr(figures.cache, name):g}"


def _items(figures: Figures) -> Iterator[str]:
    if figures.counts:
        yield from _head(ITEMS, "gauge", "Rows of the buffer by status, and flushes by state.")
        for name, count in sorted(figures.counts.items()):
            yield f'{ITEMS}{{what="{name}"}} {count}'


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


#: What each app said last, and when, by a clock that only goes forward.
_SAID: WeakKeyDictionary[App, tuple[float, str]] = WeakKeyDictionary()


async def expose_memory(app: App) -> str:
    """Return the figures of an app that serves memory, nothing of another one. Raises StoreUnavailableError.

    They are looked at anew every `[memory] metrics_interval`, however often they are asked for.
    """
    if not set(KINDS.values()) & set(app.registry.queues()):
        return ""
    memory, now = app.settings.memory, time.monotonic()
    at, text = _SAID.get(app, (None, ""))
    if at is None or now - at >= memory.metrics_interval.total_seconds():
        text = expose(await _figures(app), memory)
        _SAID[app] = now, text
    return text


async def _figures(app: App) -> Figures:
    """Return the figures of an app, and what its tables hold once they are there."""
    if makes_memory(app):
        from headrace.apps.memory.tables import MemoryTables  # late: a service of another app needs no driver

        with suppress(ConfigError, StoreVersionError):
            return await memory_figures(app, MemoryTables(app))
    return await memory_figures(app)
