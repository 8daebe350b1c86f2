"""Tells from the thread of the heartbeat whether the event loop of the worker still turns.

A handler that blocks the loop costs no lease, but while it does nothing else of its worker goes on: no other handler,
no ack, no cancel. That is worth a warning that names the place.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import traceback

from headrace.engine.telemetry import Telemetry
from headrace.ports.clock import Clock

LOG = logging.getLogger("headrace.worker")

#: A loop that answers later than this is blocked rather than busy.
BLOCKED_SECONDS = 0.5


class LoopWatch:
    """Asks one loop for a sign of life at each `look`, and says when the last one asked for never came."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, telemetry: Telemetry) -> None:
        """Made in the thread of `loop`; `look` is called in another one."""
        self._loop, self._clock, self._telemetry = loop, clock, telemetry
        self._thread = threading.get_ident()
        self._asked_at: float | None = None
        self._warned = False

    def look(self) -> None:
        """Note how long the loop has been blocked, warn once each time, and ask again when it has answered."""
        asked_at, now = self._asked_at, self._clock.monotonic()
        if asked_at is None:
            self._telemetry.gauge("headrace.loop.blocked_ms", 0)
            self._ask(now)
            return
        blocked = now - asked_at
        if blocked < BLOCKED_SECONDS:
            return
        self._telemetry.gauge("headrace.loop.blocked_ms", round(blocked * 1000))
        if not self._warned:
            self._warned = True
            self._telemetry.count("headrace.loop.blocked")
            LOG.warning(
                "the event loop has been blocked for %.1f s, at %s: nothing else of this worker goes on; "
                "await what blocks, or make the handler a plain function, which runs in a thread",
                blocked, self._place(),
            )  # fmt: skip

    def _ask(self, now: float) -> None:
        self._warned = False
        self._asked_at = now
        # RuntimeError: the loop has ended.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._asked_at = None

    def _place(self) -> str:
        frame = sys._current_frames().get(self._thread)
        if frame is None:
            return "an unknown place"
        place = traceback.extract_stack(frame, limit=1)[-1]
        return f"{place.filename}:{place.lineno} in {place.name}"
