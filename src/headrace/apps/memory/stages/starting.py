"""Whose turn it is: the first unfinished flush of each user is begun, the others wait for its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.apps.memory.data.flushes import Flush, FlushState
from headrace.apps.memory.means import TABLES
from headrace.apps.memory.stages.runs import may_share, priority_at, start_run
from headrace.apps.memory.stages.sharing import wait_for_others


@dataclass(frozen=True, slots=True)
class Started:
    """What is unfinished of a user, and the priority of the first of it; None: nothing is."""

    unfinished: Sequence[Flush]
    priority: int | None


async def start_next(user_id: str) -> Started:
    """Begin the first unfinished flush of a user, once: by itself, or together with those of others."""
    unfinished = await TABLES.unfinished(user_id)
    if not unfinished:
        return Started((), None)
    first = unfinished[0]
    priority = await priority_at(first, "process")
    if first.state is FlushState.WAITING:
        if may_share(first):
            await wait_for_others()
        else:
            await start_run(first, priority)
    return Started(unfinished, priority)
