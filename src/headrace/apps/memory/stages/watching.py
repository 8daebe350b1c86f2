"""What the sweep looks at besides: alerts on figures, and the checkpoint of what goes on."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic

from headrace.apps.memory.alerts import AlertBook
from headrace.apps.memory.checkpoints import checkpoint
from headrace.apps.memory.figures import memory_figures
from headrace.apps.memory.means import TABLES, settings
from headrace.apps.memory.opening import app

_BOOK = AlertBook()
#: When this process looked last, by what it looked at.
_LOOKED_AT: dict[str, float] = {}


async def look_around() -> None:
    """Look at what is due: figures each `[memory] metrics_interval`, a checkpoint each `checkpoint_interval`."""
    if _is_due("figures", settings().metrics_interval):
        await _BOOK.look(app, await memory_figures(app, TABLES))
    if _is_due("checkpoint", settings().checkpoint_interval):
        await checkpoint(app, TABLES)


def _is_due(what: str, interval: timedelta) -> bool:
    now = monotonic()
    if now - _LOOKED_AT.get(what, -interval.total_seconds()) < interval.total_seconds():
        return False
    _LOOKED_AT[what] = now
    return True
