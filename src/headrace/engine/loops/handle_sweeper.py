"""The sweeper of handles: what was waited for in vain ends when its time has come.

Guaranteed: a handle ends late by at most one interval, by the store's clock, while any process sweeps. Every worker and
callback service sweeps; each handle ends once.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.engine.loops.loop import Loop
from headrace.engine.telemetry import Telemetry
from headrace.ports.handle_cache import HandleCache
from headrace.ports.handle_store import HandleStore

SLICE = 500

EXPIRED = "headrace.handles.expire"


class HandleSweeper(Loop):
    """Ends one slice of handles per step and comes back at once while slices are full."""

    name = "handle-sweeper"

    def __init__(
        self, handles: HandleStore, telemetry: Telemetry, *, cache: HandleCache | None = None,
        interval: timedelta = timedelta(seconds=1),
    ) -> None:  # fmt: skip
        super().__init__(interval)
        self._handles, self._telemetry, self._cache = handles, telemetry, cache

    async def step(self) -> None:
        """Sweep once."""
        expired = await self._handles.expire_handles(limit=SLICE)
        if expired:
            self._telemetry.count(EXPIRED, len(expired))
        if len(expired) >= SLICE:
            self.wake()
        if self._cache is not None:
            for view in expired:
                await self._cache.put(view)
