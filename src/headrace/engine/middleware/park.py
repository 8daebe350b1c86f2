"""Park: a handler that asked to leave its slot runs again later, and spends no attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.engine.attempt import Attempt, Proceed
from headrace.engine.context import engine_log
from headrace.model.job import Park
from headrace.model.outcome import Snooze
from headrace.model.parking import ParkRequested, current_slot


async def park(attempt: Attempt, proceed: Proceed) -> Any:
    """Run the attempt; where its handler asked to be parked, end it with what it waits for.

    Of several things that it waits for in a task group a signal counts, else the longest time: what it enters again
    finds that one over, or asks anew.
    """
    slot = current_slot.set(attempt.slot)
    try:
        return await proceed(attempt)
    except ParkRequested as request:
        asked = request
    except BaseExceptionGroup as group:
        # Of a handler that waits for several things in a task group: whatever else failed there is its ending.
        parked, others = group.split(ParkRequested)
        if parked is None or others is not None:
            raise
        asked = max(_leaves(parked), key=_weight)
    finally:
        current_slot.reset(slot)
    attempt.limited = asked.limited
    engine_log(attempt.context).info("left its slot%s: it waits for %s", _spoken(asked.wait), asked.reason)
    if asked.key is None and asked.wait is not None:
        return Snooze(max(asked.wait, timedelta()))
    return Park(asked.key, asked.wait)


def _weight(request: ParkRequested) -> tuple[bool, timedelta]:
    return request.key is not None, timedelta.max if request.wait is None else request.wait


def _spoken(wait: timedelta | None) -> str:
    return "" if wait is None else f" for {wait.total_seconds():.1f} s"


def _leaves(group: BaseExceptionGroup[ParkRequested]) -> list[ParkRequested]:
    found: list[ParkRequested] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
