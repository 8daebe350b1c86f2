"""What the sweep looks at besides: alerts on figures, the checkpoint of what goes on, and what is old enough to go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.apps.memory.alerts import tell_alerts
from headrace.apps.memory.checkpoints import checkpoint
from headrace.apps.memory.figures import memory_figures
from headrace.apps.memory.means import TABLES, settings
from headrace.apps.memory.opening import app

#: How often it is looked what is old enough to go, and how many rows go at once.
PRUNE_EVERY, MOST_PRUNED = timedelta(minutes=1), 5_000
#: In which interval this process looked last, by what it looked at.
_LOOKED_AT: dict[str, int] = {}


async def look_around() -> None:
    """Look at what is due: figures each `[memory] metrics_interval`, a checkpoint each `checkpoint_interval`; prune."""
    if _is_due("figures", settings().metrics_interval):
        await tell_alerts(app, await memory_figures(app, TABLES))
    if _is_due("checkpoint", settings().checkpoint_interval):
        await checkpoint(app, TABLES)
    if _is_due("prune", PRUNE_EVERY) and await TABLES.prune(settings().keep_flushes, MOST_PRUNED) >= MOST_PRUNED:
        del _LOOKED_AT["prune"]  # there may be more


def _is_due(what: str, interval: timedelta) -> bool:
    """Whether this process has not looked in this interval of the clock: so that each has a look, whoever has it."""
    number = int(datetime.now(UTC).timestamp() // interval.total_seconds())
    if _LOOKED_AT.get(what) == number:
        return False
    _LOOKED_AT[what] = number
    return True
