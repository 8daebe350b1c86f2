"""The room in the quota of a model as it is now: what its processes tell, and what was planned here since they did."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.apps.details.room import Room, room_of
from headrace.model.quota import Pool

if TYPE_CHECKING:
    from headrace import App

#: How often the processes' figures are read.
LOOK_SECONDS = 1.0
#: Calls per second, where no limit is configured and none was learnt: with them a pool begins.
FIRST_FLOW = 10.0


class Rooms:
    """Knows the room of the pool of `[llm]`, at the cost of one look a second.

    Processes tell with each heartbeat, so that what they tell is seconds old: what this one has planned meanwhile is
    kept beside it, and the larger count holds.
    """

    def __init__(self, app: App) -> None:
        self._app, self._looked_at = app, 0.0
        self._flows: Mapping[str, float] = {}
        #: Calls that wait, calls in flight, and for how many seconds nothing passes, as they were told.
        self._told = (0, 0, 0.0)
        #: Of the calls that were planned here: begin and end of those that wait, and the ends of those that have begun.
        self._waiting: list[tuple[float, float]] = []
        self._running: list[float] = []

    async def current(self) -> Room:
        """Return the room. Raises StoreUnavailableError."""
        model = self._app.settings.llm_settings()
        pool, now = Pool(model.pool_name, model.limits), time.monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            told = await self._app.pool(pool.name)
            self._flows = told.flows
            self._told = told.waiting, told.in_flight, told.closed.total_seconds()
        self._pass_to(time.monotonic())
        flows = self._flows or ({} if pool.limits.flows else {"pace": FIRST_FLOW})
        waiting, running, closed = self._told
        return room_of(
            pool, flows=flows, waiting=max(waiting, len(self._waiting)), running=max(running, len(self._running)),
            closed=max(0.0, closed - (now - self._looked_at)),
        )  # fmt: skip

    def take(self, calls: Iterable[tuple[float, float]]) -> None:
        """Note calls that were planned: when each begins and ends, in seconds from now."""
        now = time.monotonic()
        for begin, end in calls:
            heapq.heappush(self._waiting, (now + begin, now + end))

    def _pass_to(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            heapq.heappush(self._running, heapq.heappop(self._waiting)[1])
        while self._running and self._running[0] <= now:
            heapq.heappop(self._running)
