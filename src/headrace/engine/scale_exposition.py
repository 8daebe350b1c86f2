"""The scale signal as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.model.scale_values import HOLDS, ScaleSignal

#: Meaning and value of each metric of a queue.
METRICS: dict[str, tuple[str, Callable[[ScaleSignal], int]]] = {
    "headrace_wanted_workers": ("Workers that the queue wants.", lambda signal: signal.wanted_workers),
    "headrace_eligible_jobs": ("Ready jobs that only slots keep from starting.", lambda signal: signal.load.eligible),
    "headrace_scale_held": (
        "1 while a quota, a budget or a breaker keeps the wanted workers as they are.",
        lambda signal: signal.reason in HOLDS,
    ),
}


def expose_scale(signals: Sequence[ScaleSignal]) -> str:
    """Return the figures of queues.

    >>> print(expose_scale([]).splitlines()[1])
    # TYPE headrace_wanted_workers gauge
    """
    lines = []
    for name, (meaning, value) in METRICS.items():
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
        lines += [f'{name}{{queue="{signal.queue}"}} {int(value(signal))}' for signal in signals]
    return "\n".join(lines) + "\n"
