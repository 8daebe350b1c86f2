"""Park: a handler that asked to leave its slot runs again later, and spends no attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.engine.attempt import Attempt, Proceed
from headrace.model.outcome import Snooze
from headrace.model.parking import ParkRequested


async def park(attempt: Attempt, proceed: Proceed) -> Any:
    """Run the attempt; where its handler asked to be parked, end it with the time of its next run."""
    try:
        return await proceed(attempt)
    except ParkRequested as request:
        asked = request
    except BaseExceptionGroup as group:
        # Of a handler that waits for several things in a task group: whatever else failed there is its ending.
        parked, others = group.split(ParkRequested)
        if parked is None or others is not None:
            raise
        asked = max(_leaves(parked), key=lambda request: request.wait)
    attempt.context.log.info("left its slot for %.1f s: it waits for %s", asked.wait.total_seconds(), asked.reason)
    return Snooze(max(asked.wait, timedelta()))


def _leaves(group: BaseExceptionGroup[ParkRequested]) -> list[ParkRequested]:
    found: list[ParkRequested] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
