"""Waking: what is paused elsewhere is told that the handle it waits for has ended.

Guaranteed: a target is tried until it goes on, or needs it no more, however often this process dies on the way. Not
guaranteed: that it is told once; who is woken twice must not mind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta

from headrace.engine.loops.loop import Loop
from headrace.engine.telemetry import Telemetry
from headrace.model.resume_handle import HandleView
from headrace.ports.handle_store import HandleStore
from headrace.ports.waker import Waker, Woken

LOG = logging.getLogger("headrace.waking")

SLICE = 50
#: What could not be woken is tried again after this long, and what is being woken is hidden from others so long.
AGAIN_IN = timedelta(seconds=5)

WOKEN = "headrace.handles.wake"


class WakeLoop(Loop):
    """Wakes the targets of one slice at once per step and comes back at once while slices are full."""

    name = "waking"

    def __init__(
        self, handles: HandleStore, wakers: Mapping[str, Waker], telemetry: Telemetry,
        interval: timedelta = timedelta(seconds=1), *, again_in: timedelta = AGAIN_IN,
    ) -> None:  # fmt: skip
        super().__init__(interval)
        self._handles, self._wakers, self._telemetry = handles, wakers, telemetry
        # Who can wake nothing leaves everything in sight of those who can.
        self._again_in = again_in if wakers else timedelta(milliseconds=1)
        self._unknown: set[str] = set()

    async def step(self) -> None:
        """Wake what is due, once."""
        if self._unknown and not self._wakers:
            return
        due = await self._handles.due_wakes(limit=SLICE, again_in=self._again_in)
        results = await asyncio.gather(*map(self._wake, due), return_exceptions=True)
        if len(due) >= SLICE:
            self.wake()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _wake(self, handle: HandleView) -> None:
        kind, _, target = handle.target.partition(":")
        waker = self._wakers.get(kind)
        if waker is None:
            self._tell_unknown(kind, handle)
        elif await waker.wake(target) is Woken.DONE:
            await self._handles.mark_woken(handle.correlation_id)
            self._telemetry.count(WOKEN)

    def _tell_unknown(self, kind: str, handle: HandleView) -> None:
        if kind in self._unknown:
            return
        self._unknown.add(kind)
        LOG.warning(
            "resume handle %s has the target %r, and nothing here wakes targets of kind %r: known are %s. Its handle "
            "stays to be woken; see [events] in the settings",
            handle.correlation_id, handle.target, kind, ", ".join(sorted(self._wakers)) or "none",
        )  # fmt: skip
